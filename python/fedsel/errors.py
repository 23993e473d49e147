"""Errors a user can cause.

Every one says what must hold, what came, and where. The command line prints the message on one line and exits with
status 2; anything else that escapes is a bug.
"""


class FedselError(ValueError):
    """Base of all errors raised for input that fedsel cannot accept."""


class SchemaError(FedselError):
    """A schema is malformed or inconsistent."""


class DataError(FedselError):
    """Rows do not fit the schema, or a data file cannot be read."""


class ReleaseError(FedselError):
    """A release is malformed, inconsistent, or of another format."""


class RuleError(FedselError):
    """A score rule, or what a release says about its scores, is malformed or does not fit the schema."""


class PoolError(FedselError):
    """Releases do not form one pool, or a stored pool is damaged."""


class PrivacyError(FedselError):
    """A privacy parameter is out of range, or a guarantee cannot be given."""


class BudgetError(PrivacyError):
    """A ledger refuses a charge."""


class SelectionError(FedselError):
    """A search was asked for something it cannot do."""


class InfeasibleError(SelectionError):
    """No federation keeps all constraints."""


class SubgroupError(FedselError):
    """A subgroup protocol is malformed, its parts do not go together, or it was asked for something it cannot do."""


class TrainingError(FedselError):
    """A training run was asked for something it cannot do, or went wrong at a named client."""


class DivergedError(TrainingError):
    """Training led to numbers that are not finite."""


class MissingExtraError(FedselError):
    """An optional dependency is not installed; the message names the extra that brings it."""
