"""How a report says things in words and figures."""

from __future__ import annotations

import math

from fedsel.report.comparison import Comparison
from fedsel.selection.result import Selection

MINUS, DASH = "\N{MINUS SIGN}", "\N{EN DASH}"

PARTS = {
    "sensitive_target": ("direct bias", "what the sensitive attribute tells about the target"),
    "sensitive_feature": ("proxy bias", "what the features tell about the sensitive attribute"),
    "feature_feature": ("redundancy", "what the features tell about each other"),
    "feature_target": ("signal", "what the features tell about the target"),
}

_CERTIFICATES = {
    "proof": ("Proved best", "Every federation of this size was evaluated, or proved not to be better."),
    "model": (
        "Best under the second-order model",
        "All federations were gone through, most by a model of the loss whose error is measured, not proved.",
    ),
    "swap-optimal": ("No better exchange", "Better federations that differ in more members may exist."),
    "none": ("Nothing proved", "Better federations may exist."),
}


def number(value: float, decimals: int = 4) -> str:
    """Format a number with a true minus sign and a fixed number of decimals; a dash where there is none."""
    if math.isnan(value):
        return DASH
    text = f"{value:,.{decimals}f}"
    # What rounds to zero has no sign.
    return text.lstrip("-") if not text.strip("-0.,") else text.replace("-", MINUS)


def difference(value: float, decimals: int = 4) -> str:
    """As `number`, with a plus sign where it is positive."""
    text = number(value, decimals)
    return f"+{text}" if value > 0 and text.strip("0.,") else text


def percent(share: float) -> str:
    """Format a share as whole per cent, or with a decimal below one per cent."""
    value = 100.0 * share
    if 0 < value < 0.1:
        return "<0.1%"
    if 99.9 < value < 100:
        return ">99.9%"
    return f"{value:.1f}%" if value < 1 or 99 < value < 100 else f"{value:.0f}%"


def seconds(value: float) -> str:
    """Format a time in seconds."""
    return f"{value:,.3f} s" if value < 10 else f"{value:,.0f} s"


def epsilon(selection: Selection) -> str:
    """Return the budget of the clients, as a range where they differ."""
    low, high = selection.privacy.epsilon_min, selection.privacy.epsilon_max
    texts = ["∞" if math.isinf(value) else f"{value:g}" for value in (low, high)]
    return texts[0] if low == high else f"{texts[0]} to {texts[1]}"


def certificate(selection: Selection) -> tuple[str, str]:
    """Return the certificate as a title and a sentence on what it leaves open."""
    title, remark = _CERTIFICATES[selection.certificate.kind]
    gap = selection.certificate.gap
    return title, f"{remark} None is better by more than {gap:.2g} bits: that is proved." if gap else remark


def standing(comparison: Comparison) -> str:
    """Tell the selection's place among other federations, in one sentence."""
    count = len(comparison.losses)
    if count == 0:
        return "No random federation was found that keeps the constraints, so there is nothing to compare with."
    if comparison.complete and count == 1:
        return "There is no other federation of this size to compare with."
    among = f"all {count:,} federations of this size" if comparison.complete else f"{count:,} random federations"
    if comparison.better == 0:
        place = f"Among {among}, none has a lower loss than the chosen one"
    else:
        verb = "has" if comparison.better == 1 else "have"
        place = f"Among {among}, {comparison.better:,} {verb} a lower loss than the chosen one"
    distance = comparison.distance
    if distance is None:
        return f"{place}; their losses are all the same."
    side = "below" if distance >= 0 else "above"
    return f"{place}, which lies {abs(distance):.1f} standard deviations {side} their mean."


def warnings(selection: Selection) -> list[tuple[str, str]]:
    """List what a reader must see first, each a title and a sentence."""
    found = []
    privacy = selection.privacy
    if privacy.exact:
        found.append(("Not private", "Exact counts were released. Do not use this where records need protection."))
    if privacy.seeded:
        found.append(
            (
                "Experiment only",
                "The noise came from a seeded generator. Whoever knows the seed can remove it: nothing is protected.",
            )
        )
    if selection.stop_reason != "completed":
        found.append(
            ("Stopped early", f"The search or its certificate did not finish ({selection.stop_reason}); see below.")
        )
    found.extend(("Note", f"{note[:1].upper()}{note[1:]}.") for note in selection.notes)
    return found
