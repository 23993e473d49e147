"""Plain tables for the terminal: the same text at any width and for any version of the libraries."""

from __future__ import annotations

from collections.abc import Sequence


def text_table(headers: Sequence[str], rows: Sequence[Sequence[str]], *, right: Sequence[int] = ()) -> str:
    """Align cells in columns two spaces apart.

    Parameters
    ----------
    headers : sequence of str
        One per column.
    rows : sequence of sequence of str
        Cells, as many per row as there are headers.
    right : sequence of int
        Columns to align right, such as numbers.

    Returns
    -------
    str
        Lines without a newline at the end; no trailing spaces.
    """
    # rich knows how many terminal cells wide and combining characters take
    from rich.cells import cell_len

    lines = [list(headers), *[list(row) for row in rows]]
    widths = [max(cell_len(line[column]) for line in lines) for column in range(len(headers))]

    def aligned(line: Sequence[str]) -> str:
        cells = []
        for column, text in enumerate(line):
            gap = " " * (widths[column] - cell_len(text))
            cells.append(gap + text if column in right else text + gap)
        return "  ".join(cells).rstrip()

    return "\n".join([aligned(lines[0]), "  ".join("-" * width for width in widths), *map(aligned, lines[1:])])
