from decimal import Decimal, localcontext

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedsel.privacy.exponential import exp_bracket, exp_digits


def exact_digits(numerator, denominator, bits):
    with localcontext() as context:
        context.prec = 400
        return int((-Decimal(numerator) / Decimal(denominator)).exp() * 2**bits)


@given(numerator=st.integers(0, 10**6), denominator=st.integers(1, 10**6), bits=st.sampled_from([1, 16, 63, 200]))
def test_digits(numerator, denominator, bits):
    assert exp_digits(numerator, denominator, bits) == exact_digits(numerator, denominator, bits)


@pytest.mark.parametrize(("numerator", "denominator"), [(1, 10**30), (10**30 + 1, 10**30), (700, 1), (1, 3)])
def test_brackets_hold_and_are_tight(numerator, denominator):
    low, high = exp_bracket(numerator, denominator, 256)
    assert low <= exact_digits(numerator, denominator, 256) < high
    assert high - low < 1 << 16
