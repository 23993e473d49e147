"""Binary digits of exp(-x) for rational x, from integers only."""

from __future__ import annotations


def exp_bracket(numerator: int, denominator: int, work: int) -> tuple[int, int]:
    """Integers below and above 2^work exp(-numerator / denominator), a few thousand units apart at most.

    Parameters
    ----------
    numerator, denominator : int
        x >= 0 as a fraction, not necessarily reduced.
    work : int
        Binary digits carried.
    """
    if numerator >= work * denominator:  # exp(-x) < 2^-work
        return 0, 1
    halvings = (numerator // denominator).bit_length() + 1
    z = (numerator << work) // (denominator << halvings)  # x / 2^halvings < 1/2, rounded down by less than one unit
    term, total, k = 1 << work, 0, 0
    while term:
        total += -term if k & 1 else term
        k += 1
        term = (term * z >> work) // k
    # every term is off by at most 2 units, z by 1; what is left out is below 3
    slack = 2 * k + 4
    low, high = max(0, total - slack), min(1 << work, total + slack)
    for _ in range(halvings):
        low, high = low * low >> work, -(-high * high >> work)
    return low, high


def exp_digits(numerator: int, denominator: int, bits: int) -> int:
    """Return floor(2^bits exp(-numerator / denominator)), exactly.

    exp(-x) is irrational for rational x > 0, so enough digits always settle the floor.
    """
    if numerator == 0:
        return 1 << bits
    extra = 32
    while True:
        low, high = exp_bracket(numerator, denominator, bits + extra)
        if low >> extra == high >> extra:
            return low >> extra
        extra *= 2
