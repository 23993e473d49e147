"""Options that ``fedsel release`` and ``fedsel release-all`` share."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

PRIVACY = "Privacy"
LEDGER = "Ledger"
EXPERIMENTS = "Experiments"


class AdjacencyChoice(StrEnum):
    """Which neighbouring data sets the guarantee speaks of."""

    add_remove = "add-remove"
    replace_one = "replace-one"


class MechanismChoice(StrEnum):
    """Kind of noise."""

    discrete_gaussian = "discrete-gaussian"
    discrete_laplace = "discrete-laplace"


class AccountingChoice(StrEnum):
    """How the noise is derived from the guarantee."""

    auto = "auto"
    exact = "exact"
    zcdp = "zcdp"
    rdp = "rdp"


class CompositionChoice(StrEnum):
    """How a ledger adds up its charges."""

    basic = "basic"
    zcdp = "zcdp"


class PrecisionChoice(StrEnum):
    """How the tables share the noise."""

    equal = "equal"
    loss = "loss"


SchemaOption = Annotated[
    Path, typer.Option("--schema", help="The schema (TOML) that all clients agreed on.", show_default=False)
]
EpsilonOption = Annotated[
    float,
    typer.Option(
        help="Privacy cost of a client's release: 1 is a common choice, less is more private and more noise; "
        "inf: exact counts, no privacy.",
        show_default=False,
        rich_help_panel=PRIVACY,
    ),
]
DeltaOption = Annotated[
    float | None,
    typer.Option(
        help="Delta that goes with epsilon (default: 1e-5; none for discrete Laplace).",
        show_default=False,
        rich_help_panel=PRIVACY,
    ),
]
AdjacencyOption = Annotated[
    AdjacencyChoice,
    typer.Option(
        help="What is protected: that a record is there at all, or (more noise) what it says.", rich_help_panel=PRIVACY
    ),
]
MechanismOption = Annotated[
    MechanismChoice,
    typer.Option(help="Kind of noise; Laplace needs no delta but is several times wider.", rich_help_panel=PRIVACY),
]
AccountingOption = Annotated[
    AccountingChoice,
    typer.Option(
        help="How the noise is calibrated: auto and exact give the least; zcdp and rdp are for comparison.",
        rich_help_panel=PRIVACY,
    ),
]
PrecisionOption = Annotated[
    PrecisionChoice,
    typer.Option(
        help="How the tables share the noise: equal, or less on those that the federation loss weighs most. "
        "All clients must agree.",
        rich_help_panel=PRIVACY,
    ),
]
ScoresOption = Annotated[
    bool,
    typer.Option(
        "--scores",
        help="Plan a second round, of scores (fedsel scores), under the same guarantee: for one epsilon, more of what "
        "the selection needs. Sets the precision of the tables by itself.",
        rich_help_panel=PRIVACY,
    ),
]
RoundOption = Annotated[
    int,
    typer.Option(
        "--round", min=1, help="Round of the protocol; a ledger charges a round only once.", rich_help_panel=LEDGER
    ),
]
NoLedgerOption = Annotated[
    bool,
    typer.Option("--no-ledger", help="Charge no ledger: nothing limits repeated releases.", rich_help_panel=LEDGER),
]
BudgetEpsilonOption = Annotated[
    float | None,
    typer.Option(
        help="Whole budget of a new ledger, for all rounds to come (default: this release's cost).",
        show_default=False,
        rich_help_panel=LEDGER,
    ),
]
BudgetDeltaOption = Annotated[
    float | None,
    typer.Option(
        help="Delta of a new ledger's budget (default: enough for its epsilon).",
        show_default=False,
        rich_help_panel=LEDGER,
    ),
]
CompositionOption = Annotated[
    CompositionChoice | None,
    typer.Option(
        "--composition",
        help="How a new ledger adds up charges: basic (epsilons and deltas), or zcdp, which grants more releases with "
        "Gaussian noise and needs a delta above 0 (default: basic).",
        show_default=False,
        rich_help_panel=LEDGER,
    ),
]
NoiseSeedOption = Annotated[
    int | None,
    typer.Option(
        min=0,
        help="NOT SECURE, experiments only: draw the noise from this seed.",
        show_default=False,
        rich_help_panel=EXPERIMENTS,
    ),
]
NonPrivateOption = Annotated[
    bool,
    typer.Option("--non-private", help="Confirm exact releases (--epsilon inf).", rich_help_panel=EXPERIMENTS),
]
DelimiterOption = Annotated[
    str | None,
    typer.Option(
        help="Character between the fields of a CSV file (default: a comma, a tab for .tsv).", show_default=False
    ),
]
ForceOption = Annotated[bool, typer.Option("--force", help="Replace files that exist, and charge a round again.")]
