"""Hypothesis strategies for schemas."""

from __future__ import annotations

import unicodedata
from typing import Any

import hypothesis.strategies as st

from fedsel.schema import Schema, Variable


def names() -> st.SearchStrategy[str]:
    return st.text(st.characters(exclude_categories=("Cs", "Cc", "Zl", "Zp")), min_size=1, max_size=8).filter(
        lambda text: text == text.strip(" \u00a0")
    )


@st.composite
def variables(draw: Any, name: str, role: str) -> Variable:
    kind = draw(st.sampled_from(["int", "str", "bool", "bins"]))
    fields: dict[str, Any] = {}
    if kind == "bins":
        edges = draw(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=2, max_size=6, unique=True))
        fields["bins"] = tuple(sorted(edges))
    else:
        values: st.SearchStrategy[Any] = {"int": st.integers(-(2**53) + 1, 2**53 - 1), "bool": st.booleans()}.get(
            kind, names().map(lambda text: f"v{text}")
        )
        fields["categories"] = tuple(draw(st.lists(values, min_size=1, max_size=6, unique_by=str)))
    if draw(st.booleans()):
        count = len(fields["categories"]) if "categories" in fields else len(fields["bins"]) - 1
        fields["labels"] = tuple(draw(st.lists(names(), min_size=count, max_size=count, unique=True)))
    fields["missing_values"] = tuple(draw(st.lists(names().map(lambda t: f"?{t}"), max_size=2, unique=True)))
    return Variable(name, role, missing=draw(st.sampled_from(["error", "drop", "category"])), **fields)  # type: ignore[arg-type]


@st.composite
def schemas(draw: Any) -> Schema:
    chosen = draw(st.lists(names(), min_size=1, max_size=4, unique_by=lambda t: unicodedata.normalize("NFC", t)))
    target = draw(st.integers(-1, len(chosen) - 1))
    roles = ["target" if i == target else draw(st.sampled_from(["feature", "sensitive"])) for i in range(len(chosen))]
    parts = tuple(draw(variables(name, role)) for name, role in zip(chosen, roles, strict=True))
    text = st.text(st.characters(exclude_categories=("Cs",)), max_size=20)
    return Schema(draw(names()), parts, draw(st.sampled_from(["hidden", "public"])), draw(text))
