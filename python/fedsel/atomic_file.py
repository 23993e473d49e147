"""Files that appear whole or not at all."""

from __future__ import annotations

import errno
import os
import secrets
from pathlib import Path
from types import TracebackType

from fedsel.errors import FedselError

# A file system that knows no hard links answers with one of these.
_NO_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EXDEV}


class AtomicFile:
    """A file to be published in one step, its room on the disk taken beforehand.

    The constructor makes a hidden temporary file beside the target, so that a missing folder, a lack of permission, a
    full disk or a target that exists already shows before anything irrevocable happens. As a context manager it
    removes the temporary file on leaving, unless it was published.

    Parameters
    ----------
    path : Path
        Target.
    overwrite : bool
        Replace a target that exists.
    reserve : int
        Bytes to take on the disk now.
    error : type of FedselError
        What to raise.

    Raises
    ------
    FedselError
        Of the given type, if the target exists or cannot be written.
    """

    def __init__(
        self, path: Path, *, overwrite: bool = False, reserve: int = 0, error: type[FedselError] = FedselError
    ) -> None:
        self._path = path
        self._overwrite = overwrite
        self._error = error
        if path.is_dir():
            raise error(f"{path}: expected a file to write, got a folder")
        if not overwrite and os.path.lexists(path):
            raise error(f"{path}: the file exists already")
        self._temporary = path.parent / f".fedsel-{secrets.token_hex(8)}.tmp"
        try:
            # Not by `tempfile`: the published file shall have the permissions that the user's mask gives.
            self._handle = os.open(self._temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666)
        except OSError as failure:
            raise error(f"{path}: cannot be written: {_reason(failure)}") from None
        self._open = True
        try:
            self._reserve(reserve)
        except OSError as failure:
            self.discard()
            raise error(f"{path}: cannot be written: {_reason(failure)}") from None

    def _reserve(self, size: int) -> None:
        if size <= 0 or not hasattr(os, "posix_fallocate"):
            return
        try:
            os.posix_fallocate(self._handle, 0, size)
        except OSError as failure:
            # Where room cannot be taken beforehand, a full disk only shows on writing.
            if failure.errno not in (errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS):
                raise

    def write(self, data: bytes | memoryview, *, offset: int) -> None:
        """Write a part of the content.

        Raises
        ------
        FedselError
            If that fails; the file is then given up.
        """
        try:
            os.lseek(self._handle, offset, os.SEEK_SET)
            view = memoryview(data)
            while view:
                view = view[os.write(self._handle, view) :]
        except OSError as failure:
            self.discard()
            raise self._error(f"{self._path}: cannot be written: {_reason(failure)}") from None

    def publish(self, data: bytes | None = None, *, size: int = 0) -> None:
        """Force the content to the disk and give the file its name.

        Parameters
        ----------
        data : bytes, optional
            The whole content; without it, what was written before.
        size : int
            Without `data`, the size of the content in bytes.

        Raises
        ------
        FedselError
            If that fails; the target is then as it was.
        """
        if data is not None:
            self.write(data, offset=0)
            size = len(data)
        try:
            os.ftruncate(self._handle, size)
            os.fsync(self._handle)
            self._name()
            sync_folder(self._path.parent)
        except FileExistsError:
            raise self._error(f"{self._path}: the file exists already") from None
        except OSError as failure:
            raise self._error(f"{self._path}: cannot be written: {_reason(failure)}") from None
        finally:
            self.discard()

    def _name(self) -> None:
        if not self._overwrite:
            try:
                # Unlike a rename, a link never replaces a file that appeared meanwhile.
                os.link(self._temporary, self._path)
                return
            except OSError as failure:
                if failure.errno not in _NO_LINKS:
                    raise
            if os.path.lexists(self._path):
                raise FileExistsError
        os.replace(self._temporary, self._path)

    def discard(self) -> None:
        """Close and remove the temporary file; the target stays as it is. May be called twice."""
        if self._open:
            self._open = False
            os.close(self._handle)
            self._temporary.unlink(missing_ok=True)

    def __enter__(self) -> AtomicFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.discard()


def make_folder(folder: Path, *, error: type[FedselError] = FedselError) -> None:
    """Make a folder, and those above it, unless it is there.

    Raises
    ------
    FedselError
        Of the given type, if the path or one above it is not a folder, or it cannot be made.
    """
    for path in (*reversed(folder.parents), folder):
        if path.exists() and not path.is_dir():
            raise error(f"{path}: is not a folder")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as failure:
        raise error(f"{folder}: cannot be made: {_reason(failure)}") from None


def sync_folder(folder: Path) -> None:
    """Force a folder's entries to the disk, where the system can."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    except OSError as failure:
        if failure.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(handle)


def _reason(failure: OSError) -> str:
    return failure.strerror or str(failure)
