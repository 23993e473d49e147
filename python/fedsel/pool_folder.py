"""A pool on disk: ``counts.npy``, to be memory-mapped, ``pool.json`` with the rest, ``rule.json`` with scores."""

from __future__ import annotations

import errno
import json
import os
import secrets
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from fedsel.atomic_file import sync_folder
from fedsel.errors import FedselError, PoolError
from fedsel.pool_scores import ClientScores
from fedsel.privacy.plan import NoisePlan
from fedsel.privacy.statement import json_number
from fedsel.release import check_workload
from fedsel.schema import Schema
from fedsel.score_rule_file import read_rule
from fedsel.tables import Workload

if TYPE_CHECKING:
    from fedsel.pool import Pool

FORMAT = 1
"""Format of a pool of tables; 2 adds scores."""

FORMATS = (1, 2)
COUNTS = "counts.npy"
META = "pool.json"
RULE = "rule.json"
_MAX_META = 256 * 2**20
_FIELDS = {
    "format": int,
    "shape": list,
    "dtype": str,
    "bytes": int,
    "fingerprint": str,
    "schema": str,
    "sets": list,
    "clients": list,
    "plans": list,
    "plan_index": list,
    "seeded": list,
    "rounds": list,
    "rows": list,
}
_PLAN_FIELDS = {
    "mechanism": str,
    "adjacency": str,
    "epsilon": (float, int, str),
    "delta": (float, int),
    "numerator": int,
    "weights": list,
    "accounting": str,
}
_SCORE_FIELDS = {"counts": list, "plans": list, "plan_index": list, "seeded": list, "rounds": list, "rule": str}


def save_pool(pool: Pool, folder: Path, *, overwrite: bool = False) -> None:
    """Write a pool as a folder that appears whole or not at all.

    Parameters
    ----------
    pool : Pool
        What to write.
    folder : Path
        Target.
    overwrite : bool
        Replace a stored pool; any other folder is left alone.

    Raises
    ------
    PoolError
        If the target exists or cannot be written, or the pool is denoised.
    """
    if pool.unit != 1.0:
        raise PoolError(f"{folder}: a denoised pool is not stored; store the releases and denoise again")
    if os.path.lexists(folder):
        if not overwrite:
            raise PoolError(f"{folder}: exists already")
        if not (folder / META).is_file():
            raise PoolError(f"{folder}: exists and is not a stored pool, so it is not replaced")
    temporary = folder.parent / f".fedsel-{secrets.token_hex(8)}.tmp"
    try:
        temporary.mkdir()
        try:
            with open(temporary / COUNTS, "wb") as stream:
                np.save(stream, pool.counts, allow_pickle=False)
                stream.flush()
                os.fsync(stream.fileno())
                size = stream.tell()
            described = {META: _describe(pool, size)}
            if pool.scores is not None:
                described[RULE] = pool.scores.rule.to_json().encode()
            for name, text in described.items():
                with open(temporary / name, "wb") as stream:
                    stream.write(text)
                    stream.flush()
                    os.fsync(stream.fileno())
            _replace(temporary, folder, overwrite=overwrite)
            sync_folder(folder.parent)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
    except OSError as failure:
        if failure.errno in (errno.ENOTEMPTY, errno.EEXIST):
            raise PoolError(f"{folder}: exists already") from None
        raise PoolError(f"{folder}: cannot be written: {failure.strerror or failure}") from None


def _replace(temporary: Path, folder: Path, *, overwrite: bool) -> None:
    if overwrite and folder.exists():
        # A folder cannot be replaced in one step everywhere; the old one stays whole under another name until then.
        old = temporary.with_suffix(".old")
        os.rename(folder, old)
        try:
            os.rename(temporary, folder)
        except OSError:
            os.rename(old, folder)
            raise
        shutil.rmtree(old, ignore_errors=True)
        return
    os.rename(temporary, folder)


def _describe(pool: Pool, size: int) -> bytes:
    content: dict[str, Any] = {
        "format": FORMAT if pool.scores is None else 2,
        "shape": list(pool.counts.shape),
        "dtype": "<i8",
        "bytes": size,
        "fingerprint": pool.schema.fingerprint,
        "schema": pool.schema.to_json(),
        "sets": [list(members) for members in pool.workload.sets],
        "clients": list(pool.clients),
        "plans": [_describe_plan(plan) for plan in pool.plans],
        "plan_index": list(pool.plan_index),
        "seeded": list(pool.seeded),
        "rounds": list(pool.rounds),
        "rows": list(pool.rows),
    }
    if pool.scores is not None:
        content["scores"] = {
            "counts": pool.scores.counts.tolist(),
            "plans": [_describe_plan(plan) for plan in pool.scores.plans],
            "plan_index": list(pool.scores.plan_index),
            "seeded": list(pool.scores.seeded),
            "rounds": list(pool.scores.rounds),
            "rule": pool.scores.rule.identity,
        }
    return json.dumps(content, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()


def _describe_plan(plan: NoisePlan) -> dict[str, Any]:
    described: dict[str, Any] = {
        "mechanism": plan.mechanism,
        "adjacency": plan.adjacency,
        "epsilon": json_number(plan.epsilon),
        "delta": plan.delta,
        "numerator": plan.numerator,
        "weights": list(plan.weights),
        "accounting": plan.accounting,
    }
    if plan.scores:
        described["scores"] = list(plan.scores)
    return described


def load_pool(folder: Path) -> dict[str, Any]:
    """Read the fields of a stored pool, its counts memory-mapped and read-only.

    Parameters
    ----------
    folder : Path
        What `save_pool` wrote.

    Returns
    -------
    dict
        Arguments of `Pool`.

    Raises
    ------
    PoolError
        If a file is missing, cut, damaged or does not go with the other.
    """
    content = _meta(folder)
    try:
        schema = Schema.from_json(content["schema"])
        if schema.fingerprint != content["fingerprint"]:
            raise PoolError(
                f"{folder / META}: fingerprint: expected {schema.fingerprint}, that of the schema, "
                f"got {str(content['fingerprint'])[:80]!r}"
            )
        workload = Workload(schema.names, schema.domain, tuple(_integers(members) for members in content["sets"]))
        check_workload(workload, schema)
        plans = tuple(_plan(folder, plan) for plan in content["plans"])
        indices = _integers(content["plan_index"])
        rounds = _integers(content["rounds"])
        rows = tuple(None if number is None else _integers([number])[0] for number in content["rows"])
    except (TypeError, ValueError, OverflowError) as error:
        if isinstance(error, PoolError):
            raise
        if isinstance(error, FedselError):
            raise PoolError(f"{folder / META}: {error}") from None
        raise PoolError(f"{folder / META}: expected what a pool writes, got {str(error)[:200]}") from None
    if not all(isinstance(name, str) for name in content["clients"]):
        raise PoolError(f"{folder / META}: clients: expected names")
    if not all(isinstance(flag, bool) for flag in content["seeded"]):
        raise PoolError(f"{folder / META}: seeded: expected true or false")
    counts = _counts(folder, content, (len(content["clients"]), workload.cells))
    fields = {
        "clients": tuple(content["clients"]),
        "schema": schema,
        "workload": workload,
        "counts": counts,
        "plans": plans,
        "plan_index": indices,
        "seeded": tuple(content["seeded"]),
        "rounds": rounds,
        "rows": rows,
    }
    if content["format"] == 1 and "scores" in content:
        raise PoolError(f"{folder / META}: scores: expected none in format 1")
    if content["format"] == 2:
        fields["scores"] = _scores(folder, content.get("scores"))
    return fields


def _integers(values: Any) -> tuple[int, ...]:
    """Return a list of 64-bit integers as a tuple; anything else is a TypeError."""
    if not isinstance(values, list):
        raise TypeError(f"expected a list of integers, got {type(values).__name__}")
    if not all(isinstance(v, int) and not isinstance(v, bool) and abs(v) < 2**63 for v in values):
        raise TypeError("expected integers of 64 bits")
    return tuple(values)


def _scores(folder: Path, content: Any) -> ClientScores:
    if not isinstance(content, dict):
        raise PoolError(f"{folder / META}: scores: expected a JSON object, got {type(content).__name__}")
    _check_types(content, _SCORE_FIELDS, folder / META)
    try:
        rule = read_rule(folder / RULE)
        if rule.identity != content["rule"]:
            raise PoolError(
                f"{folder / RULE}: expected the rule {content['rule'][:12]!r} that the scores were made under, "
                f"got {rule.identity[:12]}"
            )
        counts = np.array([_integers(row) for row in content["counts"]], dtype=np.int64)
        plans = tuple(_plan(folder, plan) for plan in content["plans"])
        seeded = content["seeded"]
        if not all(isinstance(flag, bool) for flag in seeded):
            raise TypeError("seeded: expected true or false")
        return ClientScores(
            rule,
            counts.reshape(len(content["counts"]), -1),
            plans,
            _integers(content["plan_index"]),
            tuple(seeded),
            _integers(content["rounds"]),
        )
    except (TypeError, ValueError, OverflowError) as error:
        if str(error).startswith(str(folder)):
            raise
        raise PoolError(f"{folder / META}: scores: {' '.join(str(error).split())[:200]}") from None


def _meta(folder: Path) -> dict[str, Any]:
    path = folder / META
    if not folder.exists():
        raise PoolError(f"{folder}: expected a stored pool, got no such folder")
    if not path.is_file():
        raise PoolError(f"{folder}: expected a stored pool, got no {META} in it")
    if path.stat().st_size > _MAX_META:
        raise PoolError(f"{path}: expected at most {_MAX_META} bytes, got {path.stat().st_size}")
    try:
        content = json.loads(path.read_bytes().decode())
    except OSError as error:
        raise PoolError(f"{path}: cannot be read: {error.strerror or error}") from None
    except (ValueError, RecursionError):
        raise PoolError(f"{path}: expected JSON, got a damaged file") from None
    if not isinstance(content, dict):
        raise PoolError(f"{path}: expected a JSON object, got {type(content).__name__}")
    if content.get("format", FORMAT) not in FORMATS:
        raise PoolError(f"{path}: format: expected 1 or 2, got {str(content['format'])[:80]}")
    _check_types(content, _FIELDS, path)
    return content


def _check_types(content: dict[str, Any], fields: dict[str, Any], path: Path) -> None:
    for name, kinds in fields.items():
        if name not in content:
            raise PoolError(f"{path}: {name}: expected a value, got none")
        if not isinstance(content[name], kinds) or isinstance(content[name], bool):
            raise PoolError(f"{path}: {name}: expected another type, got {type(content[name]).__name__}")


def _plan(folder: Path, content: Any) -> NoisePlan:
    if not isinstance(content, dict):
        raise PoolError(f"{folder / META}: plans: expected JSON objects, got {type(content).__name__}")
    _check_types(content, _PLAN_FIELDS, folder / META)
    return NoisePlan(
        mechanism=content["mechanism"],
        adjacency=content["adjacency"],
        epsilon=float(content["epsilon"]),  # "inf", or a number
        delta=float(content["delta"]),
        numerator=content["numerator"],
        weights=_integers(content["weights"]),
        accounting=content["accounting"],
        scores=_integers(content.get("scores", [])),
    )


def _counts(folder: Path, content: dict[str, Any], shape: tuple[int, int]) -> npt.NDArray[np.int64]:
    path = folder / COUNTS
    if not path.is_file():
        raise PoolError(f"{folder}: expected a stored pool, got no {COUNTS} in it")
    if tuple(content["shape"]) != shape or content["dtype"] != "<i8":
        raise PoolError(f"{folder / META}: shape: expected {shape} of '<i8', got {tuple(content['shape'])}")
    try:
        with open(path, "rb") as stream:
            version = np.lib.format.read_magic(stream)
            if version != (1, 0):
                raise PoolError(f"{path}: expected .npy of version (1, 0), got {version}")
            got, fortran, dtype = np.lib.format.read_array_header_1_0(stream)
            start = stream.tell()
        if got != shape or fortran or dtype != np.dtype("<i8"):
            raise PoolError(f"{path}: expected '<i8' of shape {shape} in C order, got {dtype.str!r} of shape {got}")
        size, expected = path.stat().st_size, start + 8 * shape[0] * shape[1]
        if size != expected or size != content["bytes"]:
            raise PoolError(f"{path}: expected {expected} bytes, got {size} (cut?)")
        mapped = np.load(path, mmap_mode="r", allow_pickle=False)
    except FedselError:
        raise
    except OSError as error:
        raise PoolError(f"{path}: cannot be read: {error.strerror or error}") from None
    except ValueError as error:
        raise PoolError(
            f"{path}: expected an .npy file, got a damaged one: {' '.join(str(error).split())[:200]}"
        ) from None
    # A plain array over the same memory: sums over a `memmap` would come back as `memmap` too.
    counts: npt.NDArray[np.int64] = mapped.view(np.ndarray)
    return counts
