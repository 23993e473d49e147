import pytest

from fedsel.errors import PrivacyError
from fedsel.privacy.adjacency import changed_cells, moved


def test_cells_of_one_table_that_change():
    assert (changed_cells("add-remove"), changed_cells("replace-one")) == (1, 2)


def test_unknown_adjacency():
    with pytest.raises(PrivacyError, match="adjacency must be one of add-remove, replace-one, got 'bounded'"):
        changed_cells("bounded")


def test_a_score_is_one_coordinate_that_moves_twice_as_far_under_replacement():
    assert moved([5, 7, 3], [16], "add-remove") == ([5, 7, 3], [1, 1, 16])
    assert moved([5, 7, 3], [16], "replace-one") == ([5, 5, 7, 7, 3], [1, 1, 1, 1, 32])
