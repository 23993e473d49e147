"""Schemas: the public agreement on variables, categories, roles and missing values.

A schema is fixed before anyone looks at data. Every client encodes its rows by it, and its fingerprint travels in every
release, so that tables of different meaning can never be added.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, get_args

from fedsel import schema_file, schema_rules
from fedsel.errors import SchemaError
from fedsel.schema_rules import MISSING_LABEL, Category, Kind

__all__ = ["MISSING_LABEL", "Category", "Kind", "Missing", "Role", "Schema", "Sizes", "Variable"]

Role = Literal["feature", "target", "sensitive"]
Missing = Literal["error", "drop", "category"]
Sizes = Literal["hidden", "public"]


@dataclass(frozen=True)
class Variable:
    """One variable: its categories or bins, its role, and what happens to values that fit neither.

    Parameters
    ----------
    name : str
        Column name in the data. Not empty, no control characters, no blanks around it.
    role : {'feature', 'target', 'sensitive'}
        What the variable is to the analysis.
    categories : sequence of int, of str or of bool, optional
        Raw values in code order, all of one type. Numbers match by value (``1``, ``1.0``, ``"1"`` and ``True`` are the
        same), text matches exactly once surrounding blanks are off.
    bins : sequence of float, optional
        Edges of half-open bins ``[a, b)``; the last bin holds its upper edge too. Exactly one of `categories` and
        `bins` must be given.
    labels : sequence of str, optional
        One text to show per category or bin.
    missing : {'error', 'drop', 'category'}
        What happens to a missing value, a value not among the categories, or a value outside the bins: refuse the data,
        drop the row, or count it in one more category, labelled ``missing/other``.
    missing_values : sequence of str, optional
        Texts that stand for a missing value in this variable, besides those of the schema. One that reads as a number
        stands for that number too: ``"-9"`` covers ``-9`` and ``-9.0``.

    Raises
    ------
    SchemaError
        If a field has the wrong type or an impossible value; the message names the variable.
    """

    name: str
    role: Role = "feature"
    categories: tuple[Category, ...] | None = None
    bins: tuple[float, ...] | None = None
    labels: tuple[str, ...] | None = None
    missing: Missing = "error"
    missing_values: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        schema_rules.check_name(self.name, "variable name")
        where = f"variable {self.name}"
        schema_rules.check_choice(self.role, get_args(Role), f"{where}: role")
        schema_rules.check_choice(self.missing, get_args(Missing), f"{where}: missing")
        if (self.categories is None) == (self.bins is None):
            got = "neither" if self.categories is None else "both"
            raise SchemaError(f"{where}: exactly one of categories and bins is needed, got {got}")
        store = object.__setattr__  # the fields of a frozen class may be brought into form only here
        if self.categories is not None:
            store(self, "categories", schema_rules.checked_categories(self.categories, where))
        if self.bins is not None:
            store(self, "bins", schema_rules.checked_bins(self.bins, where))
        if self.labels is not None:
            reserved = self.missing == "category"
            store(
                self, "labels", schema_rules.checked_labels(self.labels, self._listed, reserved=reserved, where=where)
            )
        elif self.missing == "category" and self.categories is not None and MISSING_LABEL in self.categories:
            raise SchemaError(
                f"{where}: the category {MISSING_LABEL!r} clashes with the one that missing='category' adds"
            )
        store(self, "missing_values", schema_rules.checked_missing_values(self.missing_values, where))
        schema_rules.check_apart(self.missing_values, self.categories, where)

    def __eq__(self, other: object) -> bool:
        # The kind makes the categories (0, 1) and (False, True) differ, which Python's == does not.
        if not isinstance(other, Variable):
            return NotImplemented
        return self._identity == other._identity

    def __hash__(self) -> int:
        return hash(self._identity)

    @property
    def _identity(self) -> tuple[object, ...]:
        values = (self.categories, self.bins, self.labels, self.missing_values)
        return (self.name, self.role, self.kind, self.missing, *values)

    @property
    def _listed(self) -> int:
        """Number of categories or bins, without the one for missing values."""
        if self.categories is not None:
            return len(self.categories)
        return len(self.bins or ()) - 1

    @property
    def kind(self) -> Kind:
        """``'int'``, ``'str'`` or ``'bool'`` after the type of the categories, or ``'bins'``."""
        if self.categories is None:
            return "bins"
        return schema_rules.kind_of(self.categories[0])

    @property
    def size(self) -> int:
        """Number of categories, with the one for missing values if there is one."""
        return self._listed + (self.missing == "category")

    @property
    def shown(self) -> tuple[str, ...]:
        """One text per category code: the labels, or else the categories or bins as text."""
        if self.labels is not None:
            texts = self.labels
        elif self.categories is not None:
            texts = tuple(schema_rules.category_text(category) for category in self.categories)
        else:
            texts = schema_rules.bin_texts(self.bins or ())
        return (*texts, MISSING_LABEL) if self.missing == "category" else texts


@dataclass(frozen=True)
class Schema:
    """The variables of an analysis, in order, and whether clients publish their sizes.

    Parameters
    ----------
    name : str
        Name of the schema.
    variables : sequence of Variable
        At least one; at most one target; names all different.
    sizes : {'hidden', 'public'}
        Whether clients publish their row counts. Only replace-one adjacency allows ``'public'``.
    description : str
        Free text; not part of the fingerprint.
    missing_values : sequence of str
        Texts that stand for a missing value in every variable, such as ``"?"``.

    Raises
    ------
    SchemaError
        If a field has the wrong type, or the variables do not fit together.
    """

    name: str
    variables: tuple[Variable, ...]
    sizes: Sizes = "hidden"
    description: str = ""
    missing_values: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        schema_rules.check_name(self.name, "schema name")
        schema_rules.check_choice(self.sizes, get_args(Sizes), "sizes")
        schema_rules.check_text(self.description, "description")
        store = object.__setattr__
        store(self, "missing_values", schema_rules.checked_missing_values(self.missing_values, "schema"))
        if isinstance(self.variables, (str, bytes)) or not isinstance(self.variables, Iterable):
            raise SchemaError(f"variables must be a sequence of Variable, got {type(self.variables).__name__}")
        store(self, "variables", tuple(self.variables))
        for variable in self.variables:
            if not isinstance(variable, Variable):
                raise SchemaError(f"variables must be a sequence of Variable, got {type(variable).__name__} in it")
        if not self.variables:
            raise SchemaError("a schema needs at least one variable, got none")
        self._check_together()

    def _check_together(self) -> None:
        seen: dict[str, Variable] = {}
        for variable in self.variables:
            key = schema_rules.name_key(variable.name)
            if key in seen:
                if {seen[key].role, variable.role} == {"target", "sensitive"}:
                    raise SchemaError(f"variable {variable.name}: one variable cannot be both target and sensitive")
                raise SchemaError(f"variable {variable.name}: the name occurs twice")
            seen[key] = variable
            schema_rules.check_apart(self.missing_values, variable.categories, f"variable {variable.name}")
        targets = [variable.name for variable in self.variables if variable.role == "target"]
        if len(targets) > 1:
            raise SchemaError(f"at most one variable may be the target, got {len(targets)}: {', '.join(targets)}")

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Variable names, in order."""
        return tuple(variable.name for variable in self.variables)

    @cached_property
    def domain(self) -> tuple[int, ...]:
        """Number of categories of each variable, the one for missing values included."""
        return tuple(variable.size for variable in self.variables)

    @property
    def target(self) -> str | None:
        """Name of the target, or None."""
        return next((variable.name for variable in self.variables if variable.role == "target"), None)

    @property
    def sensitive(self) -> tuple[str, ...]:
        """Names of the sensitive variables, in order."""
        return tuple(variable.name for variable in self.variables if variable.role == "sensitive")

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the features, in order."""
        return tuple(variable.name for variable in self.variables if variable.role == "feature")

    def variable(self, name: str) -> Variable:
        """Return the variable of this name.

        Raises
        ------
        SchemaError
            If there is none; the message lists those there are.
        """
        for variable in self.variables:
            if variable.name == name:
                return variable
        raise SchemaError(f"the schema has no variable {name!r}; it has {', '.join(self.names)}")

    def labels(self, variable: str) -> tuple[str, ...]:
        """Return one text per category code of the named variable."""
        return self.variable(variable).shown

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the canonical JSON without the description, 64 hexadecimal digits."""
        return hashlib.sha256(schema_file.to_json(self, description=False).encode()).hexdigest()

    def difference(self, other: Schema) -> str | None:
        """Return one line on the first difference to `other`, or None where the fingerprints agree."""
        return schema_file.difference(self, other)

    def to_json(self) -> str:
        """Return the canonical JSON: one line, sorted keys, defaults left out."""
        return schema_file.to_json(self, description=True)

    @classmethod
    def from_json(cls, text: str, *, source: str = "schema") -> Schema:
        """Read what `to_json` wrote; `source` opens every error message.

        Raises
        ------
        SchemaError
            If the text is not JSON or not a valid schema.
        """
        return schema_file.from_json(text, source=source)

    def to_toml(self) -> str:
        """Return the schema as a TOML document that `from_toml` reads back exactly."""
        return schema_file.to_toml(self)

    @classmethod
    def from_toml(cls, path: str | os.PathLike[str]) -> Schema:
        """Read a schema file.

        Raises
        ------
        SchemaError
            If the file cannot be read, is not TOML (with the line), has unknown keys, or is not a valid schema.
        """
        return schema_file.from_toml(path)

    @classmethod
    def from_toml_text(cls, text: str, *, source: str = "schema") -> Schema:
        """Read a schema from TOML text; `source` opens every error message."""
        return schema_file.from_toml_text(text, source=source)
