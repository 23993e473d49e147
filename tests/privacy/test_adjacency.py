import math

import pytest

from fedsel.errors import PrivacyError
from fedsel.privacy.adjacency import changed_cells, l1_sensitivity, l2_sensitivity


def test_sensitivities_of_one_table():
    assert (changed_cells("add-remove"), l1_sensitivity("add-remove"), l2_sensitivity("add-remove")) == (1, 1.0, 1.0)
    assert (changed_cells("replace-one"), l1_sensitivity("replace-one")) == (2, 2.0)
    assert l2_sensitivity("replace-one") == pytest.approx(math.sqrt(2))


def test_unknown_adjacency():
    with pytest.raises(PrivacyError, match="adjacency must be one of add-remove, replace-one, got 'bounded'"):
        changed_cells("bounded")
