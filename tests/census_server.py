"""A loopback server of person files, with made rows, that also misbehaves on request."""

from __future__ import annotations

import io
import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np

COLUMNS = {
    "AGEP": (0, 99), "COW": (1, 9), "SCHL": (1, 24), "MAR": (1, 5), "OCCP": (10, 9830), "POBP": (1, 554),
    "RELP": (0, 17), "WKHP": (1, 99), "SEX": (1, 2), "RAC1P": (1, 9), "PINCP": (-19_999, 120_000), "DIS": (1, 2),
    "ESP": (1, 8), "CIT": (1, 5), "MIG": (1, 3), "MIL": (1, 4), "ANC": (1, 4), "NATIVITY": (1, 2), "DEAR": (1, 2),
    "DEYE": (1, 2), "DREM": (1, 2), "ESR": (1, 6), "ST": (56, 56), "FER": (1, 2), "PUMA": (100, 500),
    "JWTR": (1, 12), "POWPUMA": (100, 500), "POVPIP": (0, 501), "JWMNP": (1, 200), "GCL": (1, 2), "PUBCOV": (1, 2),
    "PWGTP": (1, 300),
}  # fmt: skip
"""Columns of a person file that the tasks need, with the range of their codes."""


def person_csv(rows: int, seed: int = 0) -> str:
    """Return made rows, empty where the survey asks people nothing, with every code at least likely to occur."""
    rng = np.random.default_rng(seed)
    values = {name: rng.integers(low, high + 1, rows).astype(object) for name, (low, high) in COLUMNS.items()}
    age = values["AGEP"].astype(int)
    for name, youngest in {"SCHL": 3, "MIL": 17, "PINCP": 15, "MIG": 1, "DREM": 5, "ESR": 16, "GCL": 30}.items():
        values[name][age < youngest] = ""
    working = (age >= 16) & (values["ESR"] == 1)
    for name in ("JWTR", "JWMNP", "POWPUMA"):
        values[name][~working] = ""
    values["JWMNP"][values["JWTR"] == 11] = ""  # at home
    idle = ~working & (rng.random(rows) < 0.5)
    for name in ("COW", "OCCP", "WKHP"):
        values[name][idle] = ""
    values["ESP"][age >= 18] = ""
    lines = [",".join(["RT", "SERIALNO", *values])]
    lines += [
        ",".join(["P", f"2018{i:09d}", *map(str, row)]) for i, row in enumerate(zip(*values.values(), strict=True))
    ]
    return "\n".join(lines) + "\n"


def zipped(name: str, text: str) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("ACS2018_PUMS_README.pdf", "made")
        archive.writestr(name, text)
    return buffer.getvalue()


class CensusServer:
    """Answers by path: status, body, stated length; then the connection is closed, or held in silence."""

    def __init__(self) -> None:
        self.answers: dict[str, tuple[int, bytes, int, bool]] = {}
        self.asked: list[str] = []
        self.stop = threading.Event()
        self.url = ""

    def offer(
        self, path: str, body: bytes, *, status: int = 200, length: int | None = None, hold: bool = False
    ) -> None:
        self.answers[path] = (status, body, len(body) if length is None else length, hold)


@contextmanager
def census_server() -> Iterator[CensusServer]:
    census = CensusServer()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            census.asked.append(self.path)
            status, body, length, hold = census.answers.get(self.path, (404, b"not here", 8, False))
            if body or not hold:
                self.send_response(status)
                self.send_header("Content-Length", str(length))
                self.end_headers()
                self.wfile.write(body)
            if hold:
                census.stop.wait(30)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = False
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    census.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield census
    finally:
        census.stop.set()
        server.shutdown()
        thread.join()
        server.server_close()
