"""Whether a picture can be drawn, asked before the work whose result it would show."""

from __future__ import annotations

from pathlib import Path

from fedsel.errors import FedselError, MissingExtraError

_ENDINGS = (".svg", ".png", ".pdf")


def check_plotting(path: Path) -> None:
    """Refuse a plot that could not be drawn.

    Parameters
    ----------
    path : Path
        File to write.

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed.
    FedselError
        If the file's ending is unknown or its folder does not exist.
    """
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise MissingExtraError("a plot needs matplotlib: pip install 'fedsel[experiments]'") from None
    if path.suffix.lower() not in _ENDINGS:
        raise FedselError(f"{path}: a plot must end with {', '.join(_ENDINGS)}")
    if not path.parent.is_dir():
        raise FedselError(f"{path}: no such folder: {path.parent}")
