"""Downloads that end in a complete file or in one clear error."""

from __future__ import annotations

import http.client
import os
import secrets
import shutil
import urllib.error
import urllib.request
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from fedsel import __version__
from fedsel.errors import DataError

_BLOCK = 1 << 20
_ZIP_MAGIC = b"PK\x03\x04"


@contextmanager
def temporary_beside(path: Path) -> Iterator[Path]:
    """Give a name for a temporary file in the folder of `path`; the file is removed at the end if it is still there."""
    temporary = path.parent / f".fedsel-{secrets.token_hex(8)}.tmp"
    try:
        yield temporary
    finally:
        temporary.unlink(missing_ok=True)


def download(url: str, path: Path, *, timeout: float = 60.0) -> None:
    """Store what a URL answers, if the answer is a success and complete.

    Parameters
    ----------
    url : str
        Address, ``http`` or ``https``.
    path : Path
        File to write, in a folder that exists. On an error nothing complete or half is there.
    timeout : float
        Seconds that the server may stay silent.

    Raises
    ------
    DataError
        If the server cannot be reached, answers with an error or too little, or falls silent, or the file cannot be
        written. The message names the URL.
    """
    if not url.lower().startswith(("http://", "https://")):
        raise DataError(f"{url}: expected an address that begins with http:// or https://")
    with temporary_beside(path) as temporary:
        try:
            request = urllib.request.Request(url, headers={"User-Agent": f"fedsel/{__version__}"})
            with urllib.request.urlopen(request, timeout=timeout) as answer:
                _store(answer, temporary, url)
            os.replace(temporary, path)
        except urllib.error.HTTPError as error:
            with error:  # it holds the connection
                raise DataError(f"{url}: the server answered {error.code} {error.reason}") from None
        except urllib.error.URLError as error:
            raise DataError(f"{url}: {_reason(error.reason, timeout)}") from None
        except (http.client.HTTPException, OSError, ValueError) as error:
            if isinstance(error, DataError):
                raise
            raise DataError(f"{url}: {_reason(error, timeout)}") from None


def _store(answer: http.client.HTTPResponse, path: Path, url: str) -> None:
    if answer.status != http.HTTPStatus.OK:
        raise DataError(f"{url}: the server answered {answer.status} {answer.reason}, expected 200")
    stated = answer.headers.get("Content-Length")
    came = 0
    try:
        with open(path, "wb") as file:
            while block := answer.read(_BLOCK):
                came += len(block)
                file.write(block)
    except http.client.IncompleteRead as error:
        came += len(error.partial)
    # Reading by blocks ends without an exception where a connection is cut.
    if stated is not None and stated.isdecimal() and came != int(stated):
        raise DataError(f"{url}: the download was cut: {came:,} of {int(stated):,} bytes came")
    if not came:
        raise DataError(f"{url}: the server sent nothing")


def extract(archive: Path, member: str, path: Path, *, source: str) -> None:
    """Take one file out of a ZIP archive, once all of the archive is known to be intact.

    Parameters
    ----------
    archive : Path
        The archive.
    member : str
        Name of the file in it.
    path : Path
        File to write. On an error nothing is there.
    source : str
        What opens an error message, such as where the archive came from.

    Raises
    ------
    DataError
        If the archive is damaged or of another kind, does not hold the file, or the file cannot be written.
    """
    try:
        with open(archive, "rb") as file:
            start = file.read(64)
        if not start.startswith(_ZIP_MAGIC):
            raise DataError(f"{source}: expected a ZIP archive, got what begins with {start[:32]!r}")
        with zipfile.ZipFile(archive) as content, temporary_beside(path) as temporary:
            broken = content.testzip()
            if broken is not None:
                raise DataError(f"{source}: damaged ZIP archive: {broken} does not fit its checksum")
            if member not in content.namelist():
                raise DataError(
                    f"{source}: expected {member} in the archive, got {', '.join(content.namelist())[:200]}"
                )
            with content.open(member) as inside, open(temporary, "wb") as outside:
                _copy(inside, outside)
            os.replace(temporary, path)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        raise DataError(f"{source}: damaged or unreadable ZIP archive: {error}") from None
    except OSError as error:
        raise DataError(f"{source}: {path} cannot be written: {error.strerror or error}") from None


def _copy(inside: IO[bytes], outside: IO[bytes]) -> None:
    shutil.copyfileobj(inside, outside, _BLOCK)


def _reason(reason: object, timeout: float) -> str:
    if isinstance(reason, TimeoutError):
        return f"the server was silent for {timeout:g} seconds"
    if isinstance(reason, OSError):
        return f"failed: {reason.strerror or reason}"
    return f"failed: {reason}"
