import pytest

from fedsel.errors import PrivacyError
from fedsel.privacy.adjacency import changed_cells


def test_cells_of_one_table_that_change():
    assert (changed_cells("add-remove"), changed_cells("replace-one")) == (1, 2)


def test_unknown_adjacency():
    with pytest.raises(PrivacyError, match="adjacency must be one of add-remove, replace-one, got 'bounded'"):
        changed_cells("bounded")
