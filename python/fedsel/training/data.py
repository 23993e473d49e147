"""Rows of the clients of a simulation: category codes, raw numbers, targets and groups."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fedsel.encode import Codes, encode
from fedsel.errors import TrainingError
from fedsel.training.task import Task


@dataclass(frozen=True, eq=False)
class ClientData:
    """Rows of one client.

    Parameters
    ----------
    name : str
        Client name.
    task : Task
        What the columns mean.
    codes : ndarray of int, shape (rows, inputs)
        Category codes of the categorical inputs.
    numeric : ndarray of float32, shape (rows, numeric inputs)
        Standardised numbers.
    target : ndarray of bool, shape (rows,)
        Whether the target has its second category.
    group : ndarray of int, shape (rows,)
        Category codes of the sensitive attribute.

    Raises
    ------
    TrainingError
        If shapes do not fit, a code is out of range or a number not finite; the message names client and variable.
    """

    name: str
    task: Task
    codes: npt.NDArray[np.integer[Any]]
    numeric: npt.NDArray[np.float32]
    target: npt.NDArray[np.bool_]
    group: npt.NDArray[np.integer[Any]]

    def __post_init__(self) -> None:
        rows = len(self.target)
        for field, shape in (
            ("codes", (rows, len(self.task.inputs))),
            ("numeric", (rows, len(self.task.numeric))),
            ("target", (rows,)),
            ("group", (rows,)),
        ):
            if getattr(self, field).shape != shape:
                raise TrainingError(
                    f"client {self.name!r}: {field}: expected shape {shape}, got {getattr(self, field).shape}"
                )
        if self.target.dtype != np.bool_:
            raise TrainingError(f"client {self.name!r}: target: expected booleans, got {self.target.dtype}")
        self._check_codes(self.task.sensitive, self.group)
        for column, name in enumerate(self.task.inputs):
            self._check_codes(name, self.codes[:, column])
        for column, number in enumerate(self.task.numeric):
            bad = ~np.isfinite(self.numeric[:, column])
            if bad.any():
                raise TrainingError(
                    f"client {self.name!r}: row {int(bad.argmax()) + 1}: {number.name} must be a finite number, "
                    f"got {self.numeric[bad.argmax(), column]}"
                )

    def _check_codes(self, variable: str, codes: npt.NDArray[np.integer[Any]]) -> None:
        size = self.task.schema.variable(variable).size
        if codes.dtype.kind not in "iu":
            raise TrainingError(f"client {self.name!r}: {variable}: expected category codes, got {codes.dtype}")
        bad = (codes < 0) | (codes >= size)
        if bad.any():
            raise TrainingError(
                f"client {self.name!r}: row {int(bad.argmax()) + 1}: {variable} must be between 0 and {size - 1}, "
                f"got {codes[bad.argmax()]}"
            )

    @classmethod
    def of_codes(cls, name: str, task: Task, codes: Codes, numeric: npt.ArrayLike | None = None) -> ClientData:
        """Return the rows of encoded columns.

        Parameters
        ----------
        name : str
            Client name.
        task : Task
            Its schema is the one that the rows were encoded by.
        codes : Codes
            Encoded rows.
        numeric : array_like of float, shape (rows, numeric inputs), optional
            Raw numbers, to be standardised here; needed where the task has such inputs.
        """
        column = dict(zip(task.schema.names, codes.columns, strict=True))
        assert task.schema.target is not None  # the task has checked
        shape = (codes.rows, len(task.numeric))
        raw = np.empty(shape) if numeric is None and not task.numeric else np.asarray(numeric, dtype=np.float64)
        if raw.shape != shape:
            raise TrainingError(f"client {name!r}: numeric: expected shape {shape}, got {raw.shape}")
        centre = np.array([number.centre for number in task.numeric])
        scale = np.array([number.scale for number in task.numeric])
        inputs = [column[variable] for variable in task.inputs]
        return cls(
            name,
            task,
            np.stack(inputs, axis=1) if inputs else np.empty((codes.rows, 0), dtype=np.uint8),
            ((raw - centre) / scale).astype(np.float32),
            column[task.schema.target] == 1,
            column[task.sensitive].astype(np.int32),
        )

    @classmethod
    def of_rows(cls, name: str, task: Task, data: Any) -> ClientData:
        """Encode raw rows; see `fedsel.encode`.

        Parameters
        ----------
        name : str
            Client name.
        task : Task
            Its numeric inputs are read from columns of their names.
        data : DataFrame or mapping of names to arrays
            Raw rows.

        Raises
        ------
        DataError
            If the rows do not fit the schema.
        TrainingError
            If a number is missing, or rows were dropped and there are numeric inputs, which would lose their rows.
        """
        codes = encode(task.schema, data, source=f"client {name!r}")
        return cls.of_codes(name, task, codes, raw_numbers(name, task, data, codes))

    @property
    def rows(self) -> int:
        """Number of rows."""
        return len(self.target)

    def take(self, rows: npt.NDArray[np.int64]) -> ClientData:
        """Return some of the rows, in the order given."""
        return ClientData(
            self.name, self.task, self.codes[rows], self.numeric[rows], self.target[rows], self.group[rows]
        )


def raw_numbers(name: str, task: Task, data: Any, codes: Codes) -> npt.NDArray[np.float64]:
    """Return the columns of a task's numeric inputs, (rows, numeric inputs).

    Parameters
    ----------
    name : str
        Client name, for messages.
    task : Task
        Its numeric inputs are columns of their names.
    data : DataFrame or mapping of names to arrays
        Raw rows.
    codes : Codes
        The same rows, encoded.

    Raises
    ------
    TrainingError
        If a column is missing or holds no numbers, or the schema dropped rows that the numbers still have.
    """
    if task.numeric and codes.dropped:
        raise TrainingError(
            f"client {name!r}: numeric inputs need rows without missing values, {codes.dropped} rows have some"
        )
    columns = np.empty((codes.rows, len(task.numeric)))
    for position, number in enumerate(task.numeric):
        if number.name not in data:
            raise TrainingError(f"client {name!r}: no column {number.name}")
        column = data[number.name]
        try:
            # Columns of CSV files come as arrow text.
            columns[:, position] = column.cast("float64") if hasattr(column, "cast") else column
        except (TypeError, ValueError) as error:
            reason = str(error).splitlines()[0]
            raise TrainingError(f"client {name!r}: {number.name} must hold numbers: {reason}") from None
    return columns


class FederatedData:
    """Rows of several clients with one task, in order of their names, so that no result depends on another order.

    Parameters
    ----------
    clients : iterable of ClientData
        At least one; names all different.

    Raises
    ------
    TrainingError
        If there is none, a name occurs twice, or tasks differ; the message names the first difference.
    """

    def __init__(self, clients: Iterable[ClientData]) -> None:
        self.clients = tuple(sorted(clients, key=lambda client: client.name))
        if not self.clients:
            raise TrainingError("a federation needs at least one client, got none")
        self.task = self.clients[0].task
        self._position: dict[str, int] = {}
        for number, client in enumerate(self.clients):
            if client.name in self._position:
                raise TrainingError(f"client {client.name!r} occurs twice")
            self._position[client.name] = number
            difference = None if client.task is self.task else self.task.difference(client.task)
            if difference is not None:
                raise TrainingError(f"clients {self.clients[0].name!r} and {client.name!r} differ: {difference}")

    def __len__(self) -> int:
        return len(self.clients)

    @property
    def names(self) -> tuple[str, ...]:
        """Client names, sorted."""
        return tuple(client.name for client in self.clients)

    @property
    def rows(self) -> npt.NDArray[np.int64]:
        """Number of rows of each client, (clients,)."""
        return np.array([client.rows for client in self.clients], dtype=np.int64)

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the schema and of all rows, as hexadecimal digits."""
        digest = hashlib.sha256(self.task.schema.fingerprint.encode())
        for client in self.clients:
            digest.update(f"\x1f{client.name}\x1f{client.rows}\x1f".encode())
            for array in (client.codes, client.numeric, client.target, client.group):
                digest.update(np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()

    def __getitem__(self, name: str) -> ClientData:
        return self.clients[self.index([name])[0]]

    def index(self, names: Sequence[str]) -> list[int]:
        """Return the positions of clients.

        Raises
        ------
        TrainingError
            If a client is unknown or given twice, or none is given.
        """
        if not names:
            raise TrainingError("a federation needs at least one member, got none")
        for name in names:
            if name not in self._position:
                shown = ", ".join(self.names[:10]) + (", ..." if len(self) > 10 else "")
                raise TrainingError(f"the data hold no client {name!r}; they hold {shown}")
        if len(set(names)) < len(names):
            twice = next(name for name in names if list(names).count(name) > 1)
            raise TrainingError(f"member {twice!r} is given twice")
        return [self._position[name] for name in names]

    def subset(self, names: Sequence[str]) -> FederatedData:
        """Return the data of the named clients only; raises as `index` does."""
        return FederatedData(self.clients[number] for number in self.index(names))

    @classmethod
    def of_frames(cls, task: Task, frames: Mapping[str, Any]) -> FederatedData:
        """Encode raw rows, one data frame or mapping of arrays per client; raises as `ClientData.of_rows` does."""
        return cls(ClientData.of_rows(name, task, frame) for name, frame in frames.items())
