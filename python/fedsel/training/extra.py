"""The optional dependency of training, asked for in one place."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from fedsel.errors import MissingExtraError, TrainingError


def require_torch() -> None:
    """Refuse to go on without torch.

    Raises
    ------
    MissingExtraError
        If it is not installed.
    """
    try:
        import torch  # noqa: F401
    except ImportError as error:
        raise MissingExtraError(f"this needs torch: pip install 'fedsel[train]' ({error})") from None


def check_device(name: str) -> None:
    """Refuse a device that torch does not have here.

    Parameters
    ----------
    name : str
        Such as ``cpu`` or ``cuda:0``.

    Raises
    ------
    TrainingError
        If a tensor of double precision cannot be put there.
    """
    import torch

    try:
        torch.zeros(1, device=name, dtype=torch.float64).item()  # means of updates are taken in double precision
    except (RuntimeError, AssertionError, NotImplementedError, TypeError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise TrainingError(
            f"device must be one that torch can use here, such as cpu, got {name!r}: {reason}"
        ) from None


@contextmanager
def torch_threads(threads: int) -> Iterator[None]:
    """Let torch use this many threads, and as many as before afterwards."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        yield
    finally:
        torch.set_num_threads(before)
