from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from fedsel.repetitions import corrected_mean, holm


def test_without_shared_rows_it_is_the_t_test():
    values = [0.3, -0.1, 0.4, 0.2]
    found = corrected_mean(values, test_share=0.0)
    expected = stats.ttest_1samp(values, 0.0)
    interval = expected.confidence_interval(0.95)
    assert found.mean == pytest.approx(np.mean(values))
    assert found.p_value == pytest.approx(expected.pvalue)
    assert found.mean - found.half_width == pytest.approx(interval.low)


def test_the_correction_widens_the_interval():
    values = [0.3, -0.1, 0.4, 0.2]
    plain, corrected = (corrected_mean(values, test_share=share) for share in (0.0, 0.5))
    assert corrected.half_width == pytest.approx(plain.half_width * math.sqrt((1 / 4 + 0.5) / (1 / 4)))
    assert corrected.p_value > plain.p_value


def test_too_few_values_have_no_interval():
    assert corrected_mean([], test_share=0.1).mean is None
    one = corrected_mean([0.5], test_share=0.1)
    assert (one.mean, one.half_width, one.p_value, one.count) == (0.5, None, None, 1)


def test_equal_values_have_no_spread():
    assert corrected_mean([0.0, 0.0], test_share=0.1).p_value == 1.0
    assert corrected_mean([0.2, 0.2], test_share=0.1).p_value == 0.0


def test_holm_by_hand():
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.5, 0.9]) == [1.0, 1.0]
    assert holm([]) == []
