"""A look into the footer of a Parquet file before any library acts on it.

pyarrow ends the whole process when it is asked about a column whose compression codec it does not know (seen with
26.0), so what a hostile file says about its columns is read here first. The footer is one struct in Thrift's compact
protocol; the field numbers are those of the Parquet format's ``parquet.thrift``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fedsel.errors import ReleaseError

_MAX_DEPTH = 12  # a real footer nests 6 deep
_MAX_VALUES = 20_000  # a release's footer has some 300
_UNCOMPRESSED = 0

_TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT, _UUID = range(1, 14)


@dataclass(frozen=True)
class ColumnChunk:
    """What a footer says about one column of a row group; sizes in bytes."""

    uncompressed: bool
    values: int
    decoded_size: int
    stored_size: int


@dataclass(frozen=True)
class RowGroup:
    """What a footer says about one row group."""

    rows: int
    columns: tuple[ColumnChunk, ...]


@dataclass(frozen=True)
class Footer:
    """What a footer says about the file."""

    rows: int
    groups: tuple[RowGroup, ...]
    metadata: dict[bytes, bytes]


def read_footer(data: bytes) -> Footer:
    """Read the parts of a footer that tell how much the file would grow on reading.

    Parameters
    ----------
    data : bytes
        The footer, without length and magic.

    Returns
    -------
    Footer

    Raises
    ------
    ReleaseError
        If it is damaged, or larger or deeper than the footer of any release.
    """
    try:
        content = _Reader(data).struct(0)
        groups = tuple(_group(group) for group in content[4])
        metadata = {entry[1]: entry.get(2, b"") for entry in content.get(5, ())}
        return Footer(_integer(content[3]), groups, metadata)
    except (KeyError, IndexError, TypeError, AttributeError):
        raise ReleaseError("footer: expected that of a Parquet file, got damaged content") from None


def _group(content: dict[int, Any]) -> RowGroup:
    columns = []
    for chunk in content[1]:
        about = chunk[3]
        columns.append(
            ColumnChunk(
                uncompressed=_integer(about[4]) == _UNCOMPRESSED,
                values=_integer(about[5]),
                decoded_size=_integer(about[6]),
                stored_size=_integer(about[7]),
            )
        )
    return RowGroup(_integer(content[3]), tuple(columns))


def _integer(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError
    return value


class _Reader:
    """Thrift's compact protocol, as far as it is needed: structs become dicts by field number."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0
        self._values = 0

    def struct(self, depth: int) -> dict[int, Any]:
        fields: dict[int, Any] = {}
        number = 0
        while kind := self._byte():
            delta, kind = kind >> 4, kind & 15
            number = number + delta if delta else self._signed()
            fields[number] = kind == _TRUE if kind in (_TRUE, _FALSE) else self._value(kind, depth + 1)
        return fields

    def _value(self, kind: int, depth: int) -> Any:
        self._values += 1
        if self._values > _MAX_VALUES or depth > _MAX_DEPTH:
            raise ReleaseError("footer: expected that of a release, got one far too large")
        if kind in (_TRUE, _FALSE, _BYTE):  # in a list, a boolean takes a byte
            return self._byte()
        if kind in (_I16, _I32, _I64):
            return self._signed()
        if kind in (_DOUBLE, _UUID):
            return self._bytes(8 if kind == _DOUBLE else 16)
        if kind == _BINARY:
            return self._bytes(self._unsigned())
        if kind in (_LIST, _SET):
            head = self._byte()
            size = self._unsigned() if head >> 4 == 15 else head >> 4
            return [self._value(head & 15, depth + 1) for _ in range(size)]
        if kind == _MAP:
            size = self._unsigned()
            kinds = self._byte() if size else 0
            return [(self._value(kinds >> 4, depth + 1), self._value(kinds & 15, depth + 1)) for _ in range(size)]
        if kind == _STRUCT:
            return self.struct(depth)
        raise KeyError(kind)

    def _byte(self) -> int:
        value = self._data[self._at]
        self._at += 1
        return value

    def _bytes(self, size: int) -> bytes:
        if size > len(self._data) - self._at:
            raise IndexError
        self._at += size
        return self._data[self._at - size : self._at]

    def _unsigned(self) -> int:
        value = 0
        for shift in range(0, 70, 7):
            byte = self._byte()
            value |= (byte & 127) << shift
            if byte < 128:
                return value
        raise IndexError

    def _signed(self) -> int:
        value = self._unsigned()
        return value >> 1 ^ -(value & 1)
