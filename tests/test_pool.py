from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fedsel import Workload
from fedsel.errors import PoolError, ReleaseError
from fedsel.pool import Pool
from fedsel.pool_builder import PoolBuilder
from fedsel.privacy.noise_tail import cell_variance
from fedsel.privacy.plan import NoisePlan
from fedsel.release_file import write_release
from fedsel.schema import Schema, Variable
from release_samples import PAIRS, PUBLIC, SCHEMA, exact_plan, gaussian, marginals, sample

NAMES = ("north", "south", "east", "west")


def releases() -> list[Any]:
    return [sample(name, seed=number) for number, name in enumerate(NAMES)]


@pytest.fixture
def pool() -> Pool:
    return Pool.from_releases(releases())


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    paths = [tmp_path / f"{name}.parquet" for name in NAMES]
    for release, path in zip(releases(), paths, strict=True):
        write_release(release, path)
    return paths


def same(first: Pool, second: Pool) -> bool:
    fields = ("clients", "workload", "plans", "plan_index", "seeded", "rounds", "rows")
    return (
        all(getattr(first, field) == getattr(second, field) for field in fields)
        and first.schema.fingerprint == second.schema.fingerprint
        and np.array_equal(first.counts, second.counts)
    )


def test_a_row_per_client(pool: Pool) -> None:
    assert pool.clients == NAMES
    assert len(pool) == 4
    assert pool.counts.shape == (4, PAIRS.cells)
    assert pool.counts.dtype == np.int64
    assert pool.counts.flags.c_contiguous
    assert not pool.counts.flags.writeable
    for row, release in enumerate(releases()):
        assert np.array_equal(pool.counts[row], release.counts)
    assert pool.plan == gaussian()
    assert (pool.round, pool.mixed, pool.exact) == (1, (), False)
    assert pool.scale.shape == (4, 6)
    assert pool.table(1).shape == (4, 2, 4)
    assert np.array_equal(pool.table(1)[2], releases()[2].table(1))


def test_opening_files_is_gathering_releases(pool: Pool, files: list[Path]) -> None:
    assert same(Pool.open(files), pool)


def test_index_and_subset(pool: Pool) -> None:
    assert pool.index("east") == 2
    with pytest.raises(PoolError, match="the pool has no client 'up'; it has north, south, east, west"):
        pool.index("up")
    part = pool.subset(["west", "north"])
    assert part.clients == ("west", "north")
    assert np.array_equal(part.counts, pool.counts[[3, 0]])
    assert part.plans == pool.plans
    with pytest.raises(PoolError, match="client 'west' occurs twice"):
        pool.subset(["west", "west"])
    with pytest.raises(PoolError, match="at least one client"):
        pool.subset([])


# What does not go together


def test_an_empty_pool_is_refused() -> None:
    with pytest.raises(PoolError, match="at least one release, got none"):
        Pool.from_releases([])
    with pytest.raises(PoolError, match="at least one release, got none"):
        Pool.open([])


def test_a_pool_of_one_is_a_pool() -> None:
    assert Pool.from_releases([sample()]).clients == ("north",)


def test_duplicate_clients_name_both_files(files: list[Path], tmp_path: Path) -> None:
    copy = tmp_path / "copy.parquet"
    copy.write_bytes(files[1].read_bytes())
    with pytest.raises(PoolError, match=r"copy\.parquet: client 'south' occurs twice, first in .*south\.parquet"):
        Pool.open([*files, copy])


def test_another_schema_is_refused_with_its_first_difference() -> None:
    other = Schema("clinic", (Variable("sex", role="sensitive", categories=("M", "F")), *SCHEMA.variables[1:]))
    with pytest.raises(PoolError, match=r"client 'south': schema differs from that of client 'north': .*sex") as caught:
        Pool.from_releases([sample(), sample("south", schema=other)], allow_mixed=True)
    assert "\n" not in str(caught.value)


def test_another_workload_is_refused() -> None:
    fewer = Workload(PAIRS.names, PAIRS.domain, PAIRS.sets[:-1])
    with pytest.raises(PoolError, match="workload differs from that of client 'north': it has 5 tables, expected 6"):
        Pool.from_releases([sample(), sample("south", workload=fewer, plan=gaussian(5))], allow_mixed=True)
    other = Workload(PAIRS.names, PAIRS.domain, (*PAIRS.sets[:-1], (0,)))
    with pytest.raises(PoolError, match="table 6 is 'sex', expected 'ward x ill'"):
        Pool.from_releases([sample(), sample("south", workload=other)], allow_mixed=True)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"plan": gaussian(adjacency="replace-one")}, r"adjacency \(add-remove, replace-one\)"),
        ({"plan": gaussian(epsilon=0.5)}, r"epsilon \(0.5, 1\)"),
        ({"plan": gaussian(delta=1e-6)}, r"delta \(1e-06, 1e-05\)"),
        ({"plan": gaussian(numerator=90)}, "noise scale"),
        ({"plan": gaussian(accounting="rdp")}, r"accounting \(exact, rdp\)"),
        ({"plan": exact_plan()}, r"mechanism \(discrete-gaussian, none\); epsilon \(1, inf\)"),
        ({"round": 2}, r"round \(1, 2\)"),
        ({"seeded": True}, r"seeded noise \(1 of 2 clients\)"),
    ],
)
def test_mixed_releases_are_refused_unless_allowed_and_then_stated(changes: dict[str, Any], message: str) -> None:
    mixed = [sample(), sample("south", **changes)]
    with pytest.raises(PoolError, match=f"client 'south': release differs from that of client 'north' in {message}"):
        Pool.from_releases(mixed)
    pool = Pool.from_releases(mixed, allow_mixed=True)
    assert len(pool.mixed) >= 1
    assert re.match(message, "; ".join(pool.mixed))
    assert pool.round == changes.get("round", 1)
    if len(pool.plans) > 1:
        with pytest.raises(PoolError, match="2 different noise plans"):
            pool.plan  # noqa: B018
        assert pool.plan_of("south") == changes["plan"]
    assert pool.subset(["south"]).mixed == ()


def test_a_bad_file_among_good_ones_is_named(files: list[Path]) -> None:
    files[2].write_bytes(files[2].read_bytes()[:-40])
    with pytest.raises(ReleaseError, match=r"east\.parquet: "):
        Pool.open(files)


# Thousands of clients


def test_thousands_of_files_go_straight_into_one_array(tmp_path: Path) -> None:
    content = bytearray()
    source = tmp_path / "source.parquet"
    write_release(sample("client 0000"), source)
    content = bytearray(source.read_bytes())
    paths = []
    for number in range(2000):
        paths.append(tmp_path / f"{number}.parquet")
        paths[-1].write_bytes(content.replace(b"client 0000", b"client %04d" % number))
    pool = Pool.open(paths)
    assert len(pool) == 2000
    assert pool.plans == (gaussian(),)
    assert pool.clients[1999] == "client 1999"
    assert (pool.counts == sample().counts).all()


def test_a_builder_can_end_early() -> None:
    builder = PoolBuilder(10)
    builder.add(sample(), source="a")
    with pytest.raises(PoolError, match="expected 10 releases, got 1"):
        builder.finish()
    assert Pool(**builder.finish(partial=True)).clients == ("north",)


# Totals


def test_totals_are_the_inverse_variance_mean_of_table_totals() -> None:
    plan = gaussian(weights=(1, 2, 3, 4, 5, 6))
    release = sample(plan=plan)
    totals = Pool.from_releases([release]).totals()
    sums = np.array([release.table(t).sum() for t in range(6)])
    variance = PAIRS.sizes * 84 / np.arange(1, 7)
    assert totals.estimate == pytest.approx([(sums / variance).sum() / (1 / variance).sum()])
    assert totals.standard_error == pytest.approx([(1 / variance).sum() ** -0.5])
    assert abs(totals.estimate[0] - 400) < 4 * totals.standard_error[0]


def test_totals_have_the_standard_error_they_state() -> None:
    from fedsel.privacy.entropy import SeededEntropy
    from fedsel.privacy.noise import add_noise

    clients = 2000
    draws = add_noise(np.tile(marginals().counts, (clients, 1)), PAIRS.sizes, gaussian(), entropy=SeededEntropy(1))
    pool = Pool.from_releases([sample(f"c{row}", counts=draws[row]) for row in range(clients)])
    totals = pool.totals()
    z = (totals.estimate - 400) / totals.standard_error
    # mean and variance of 2,000 normal numbers: each bound fails by chance once in 1e9
    assert abs(z.mean()) < 6.2 / clients**0.5
    assert abs(z.var() - 1) < 6.2 * (2 / clients) ** 0.5


def test_totals_of_exact_and_public_sizes_are_exact() -> None:
    totals = Pool.from_releases([sample(plan=exact_plan())]).totals()
    assert totals.estimate.tolist() == [400.0]
    assert totals.standard_error.tolist() == [0.0]
    replace = gaussian(adjacency="replace-one")
    both = [sample(schema=PUBLIC, plan=replace, rows=400), sample("south", schema=PUBLIC, plan=replace)]
    totals = Pool.from_releases(both).totals()
    assert totals.estimate[0] == 400
    assert totals.standard_error[0] == 0
    assert totals.standard_error[1] > 0


def test_variance_of_the_discrete_laplace() -> None:
    for scale in (0.01, 0.3, 1, 20):
        plan = NoisePlan("discrete-laplace", "add-remove", 1.0, 0.0, round(scale * 100), (100,), "pure")
        k = np.arange(-2000, 2001)
        p = np.exp(-np.abs(k) / scale)
        assert cell_variance(plan)[0] == pytest.approx((p * k**2).sum() / p.sum(), rel=1e-9, abs=1e-30)


# Statement


def test_statement_of_one_promise(pool: Pool) -> None:
    statement = pool.private
    assert statement.private
    assert statement.sentence == (
        "Each client's release is (epsilon = 1, delta = 1e-05)-differentially private for adding or removing one of "
        "its records (discrete Gaussian noise, exact accounting)."
    )
    assert json.loads(json.dumps(statement.to_dict()))["epsilon_max"] == 1.0


def test_statement_of_exact_releases() -> None:
    statement = Pool.from_releases([sample(plan=exact_plan())]).private
    assert not statement.private
    assert statement.sentence == "NOT PRIVATE: all releases hold exact counts (epsilon = inf)."
    assert statement.to_dict()["epsilon_max"] == "inf"


def test_statement_of_seeded_and_mixed_releases() -> None:
    plans = [gaussian(epsilon=0.5, adjacency="replace-one"), gaussian(), exact_plan()]
    mixed = [sample(f"c{n}", plan=plan, seeded=n == 0) for n, plan in enumerate(plans)]
    statement = Pool.from_releases(mixed, allow_mixed=True).private
    assert (statement.exact, statement.seeded, statement.clients, statement.private) == (1, 1, 3, False)
    assert (statement.epsilon_min, statement.epsilon_max) == (0.5, float("inf"))
    assert statement.adjacency == "mixed"
    assert "The release of 2 of 3 clients is (epsilon between 0.5 and 1, delta = 1e-05)" in statement.sentence
    assert "NOT PRIVATE: the releases of 1 of 3 clients hold exact counts" in statement.sentence
    assert "EXPERIMENT ONLY: the noise of 1 of 3 clients came from a seeded generator" in statement.sentence


# Pools on disk


def test_a_stored_pool_comes_back_memory_mapped(pool: Pool, tmp_path: Path) -> None:
    pool.save(tmp_path / "pool")
    loaded = Pool.load(tmp_path / "pool")
    assert same(loaded, pool)
    assert isinstance(loaded.counts.base, np.memmap)
    assert not loaded.counts.flags.writeable
    assert sorted(os.listdir(tmp_path)) == ["pool"]
    assert sorted(os.listdir(tmp_path / "pool")) == ["counts.npy", "pool.json"]


def test_a_stored_mixed_pool_comes_back(tmp_path: Path) -> None:
    mixed = [sample("ü"), sample("b", plan=exact_plan(), round=2), sample("c", seeded=True)]
    pool = Pool.from_releases(mixed, allow_mixed=True)
    pool.save(tmp_path / "pool")
    assert same(Pool.load(tmp_path / "pool"), pool)
    assert Pool.load(tmp_path / "pool").mixed == pool.mixed


def test_saving_replaces_only_pools_and_only_if_told(pool: Pool, tmp_path: Path) -> None:
    pool.save(tmp_path / "pool")
    with pytest.raises(PoolError, match="exists already"):
        pool.save(tmp_path / "pool")
    pool.subset(["north"]).save(tmp_path / "pool", overwrite=True)
    assert Pool.load(tmp_path / "pool").clients == ("north",)
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "text").write_text("years of work")
    with pytest.raises(PoolError, match="is not a stored pool, so it is not replaced"):
        pool.save(tmp_path / "thesis", overwrite=True)
    assert (tmp_path / "thesis" / "text").read_text() == "years of work"
    with pytest.raises(PoolError, match="cannot be written"):
        pool.save(tmp_path / "no" / "pool")
    assert sorted(os.listdir(tmp_path)) == ["pool", "thesis"]


@pytest.fixture
def stored(pool: Pool, tmp_path: Path) -> Path:
    pool.save(tmp_path / "pool")
    return tmp_path / "pool"


def refusal(folder: Path) -> str:
    with pytest.raises(PoolError) as caught:
        Pool.load(folder)
    assert str(caught.value).startswith(str(folder))
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_counts_that_are_cut_long_or_of_another_form(stored: Path, pool: Pool) -> None:
    counts = stored / "counts.npy"
    content = counts.read_bytes()
    for changed, message in (
        (content[:-8], f"expected {len(content)} bytes, got {len(content) - 8} (cut?)"),
        (content + b"\0", f"expected {len(content)} bytes, got {len(content) + 1}"),
        (content[:60], "expected an .npy file, got a damaged one"),
        (b"", "expected an .npy file, got a damaged one"),
    ):
        counts.write_bytes(changed)
        assert message in refusal(stored)
    for array in (
        pool.counts.astype(np.int32),
        pool.counts[:2],
        pool.counts.astype(float),
        np.asfortranarray(pool.counts),
    ):
        with open(counts, "wb") as stream:
            np.save(stream, array)
        assert "expected '<i8' of shape (4, 44) in C order, got" in refusal(stored)
    with open(counts, "wb") as stream:
        np.save(stream, np.array([[None]], dtype=object), allow_pickle=True)
    assert "expected '<i8'" in refusal(stored)
    counts.unlink()
    assert "got no counts.npy in it" in refusal(stored)


def test_counts_beyond_any_client(stored: Path, pool: Pool) -> None:
    counts = pool.counts.copy()
    counts[2, 7] = np.iinfo(np.int64).min
    with open(stored / "counts.npy", "wb") as stream:
        np.save(stream, counts)
    assert refusal(stored) == f"{stored}: pool: counts: client 'east' has a count beyond 2**40 in magnitude"


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("format", 3, "format: expected 1 or 2, got 3"),
        ("shape", [4, 43], "shape: expected (4, 44)"),
        ("dtype", "<f8", "shape: expected (4, 44) of '<i8'"),
        ("bytes", 3, "bytes, got"),
        ("fingerprint", "0", "fingerprint: expected " + SCHEMA.fingerprint),
        ("schema", "{", "schema"),
        ("sets", [[0, 1]], "shape: expected (4, 6)"),
        ("sets", [[0, "x"]], "expected what a pool writes"),
        ("sets", [[0, 9]], "workload: positions must be between"),
        ("clients", ["a", "a", "b", "c"], "client 'a' occurs twice"),
        ("clients", ["a", 1, "b", "c"], "clients: expected names"),
        ("clients", "abcd", "clients: expected another type, got str"),
        ("plans", [], "plans: every plan must differ"),
        ("plans", [1], "plans: expected JSON objects, got int"),
        ("plans", [{}], "mechanism: expected a value, got none"),
        ("plan_index", [0, 0, 0, 1], "plans: every plan must differ"),
        ("plan_index", [0], "plan_index: expected 4, one per client, got 1"),
        ("seeded", [0, 0, 0, 0], "seeded: expected true or false"),
        ("rounds", [0, 1, 1, 1], "round: expected an integer between 1"),
        ("rows", [5, None, None, None], "rows: the schema does not declare sizes public"),
    ],
)
def test_description_edited_by_hand(stored: Path, field: str, value: Any, message: str) -> None:
    content = json.loads((stored / "pool.json").read_text())
    content[field] = value
    (stored / "pool.json").write_text(json.dumps(content))
    assert message in refusal(stored)


def test_description_missing_or_damaged(stored: Path, tmp_path: Path) -> None:
    assert "got no such folder" in refusal(tmp_path / "nothing")
    assert "got no pool.json in it" in refusal(tmp_path)
    (stored / "pool.json").write_bytes(b"\xff{")
    assert "expected JSON, got a damaged file" in refusal(stored)
    (stored / "pool.json").write_text("[]")
    assert "expected a JSON object, got list" in refusal(stored)
    (stored / "pool.json").write_text("{}")
    assert "format: expected a value, got none" in refusal(stored)
