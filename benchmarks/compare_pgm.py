"""Denoising beside private-pgm (McKenna, Sheldon and Miklau 2019) where it is within reach: a tree of pairs.

    pip install mbi && python benchmarks/compare_pgm.py

All 55 pairs of 11 variables make one clique of the graphical model, which is out of its reach; the ten pairs of a tree
are not. Errors are total variation distances of a client's tables from its exact ones, averaged over tables and noise
draws. Not private: exact data and seeded noise.
"""

from __future__ import annotations

import sys
import time
import warnings

import numpy as np

from fedsel.datasets.example import load_example
from fedsel.datasets.tree import fit_tree
from fedsel.pool import Pool
from fedsel.privacy.calibration import plan_noise
from fedsel.privacy.client import release
from fedsel.selection import denoise
from fedsel.tables import Marginals, Workload

CLIENTS = ("CT", "NV", "WY")
DRAWS = 5
ITERATIONS = 1000


def tree_workload(counts: np.ndarray, workload: Workload) -> tuple[Workload, np.ndarray]:
    """Return the pairs of the tree that all clients' exact tables suggest, and their columns among all cells."""
    tree = fit_tree(Marginals(workload, counts.sum(axis=0)))
    pairs = sorted(tuple(sorted((v, p))) for v, p in enumerate(tree.parent) if p >= 0)
    tables = [workload.sets.index(pair) for pair in pairs]
    columns = np.concatenate([np.arange(*workload.offsets[t : t + 2]) for t in tables])
    return Workload(workload.names, workload.domain, tuple(pairs)), columns


def distance(found: np.ndarray, exact: np.ndarray, workload: Workload) -> float:
    """Mean over tables of the total variation distance, both normalised and without negative cells."""
    total = 0.0
    for t in range(len(workload.sets)):
        here = slice(*workload.offsets[t : t + 2])
        p, q = np.maximum(found[here], 0), exact[here]
        total += 0.5 * np.abs(p / max(p.sum(), 1e-12) - q / q.sum()).sum()
    return total / len(workload.sets)


def by_pgm(noisy: np.ndarray, sigma: float, workload: Workload) -> np.ndarray:
    """Marginals of the graphical model that private-pgm fits to one client's tables."""
    from mbi import Domain, LinearMeasurement, estimation

    domain = Domain(workload.names, workload.domain)
    measured = [
        LinearMeasurement(
            noisy[workload.offsets[t] : workload.offsets[t + 1]].astype(float),
            tuple(workload.names[v] for v in members),
            sigma,
        )
        for t, members in enumerate(workload.sets)
    ]
    model = estimation.MirrorDescent().estimate(domain, measured, iters=ITERATIONS)
    return np.concatenate(
        [np.asarray(model.project(tuple(workload.names[v] for v in m)).datavector()).ravel() for m in workload.sets]
    )


def main() -> None:
    """Print a table."""
    warnings.filterwarnings("ignore")
    try:
        import jax
    except ImportError:
        raise SystemExit("this comparison needs private-pgm: pip install mbi") from None
    jax.config.update("jax_enable_x64", True)
    example = load_example()
    workload, columns = tree_workload(example.counts, example.workload)
    counts = np.ascontiguousarray(example.counts[:, columns])
    print(f"$ python {' '.join(sys.argv)}   # {DRAWS} draws, seeds 0 to {DRAWS - 1}, clients {', '.join(CLIENTS)}")
    print("epsilon  as released  clip + consistent  reference  private-pgm  seconds a client: reference, private-pgm")
    for epsilon in (1.0, 0.1):
        plan = plan_noise(len(workload.sets), epsilon=epsilon)
        errors: dict[str, list[float]] = {name: [] for name in ("released", "consistent", "reference", "pgm")}
        seconds = np.zeros(2)
        for draw in range(DRAWS):
            pool = Pool.from_releases(
                [
                    release(Marginals(workload, counts[row]), example.schema, plan, client=name, seed=draw)
                    for row, name in enumerate(example.clients)
                ]
            )
            started = time.perf_counter()
            reference = denoise(pool, method="reference")
            seconds[0] += (time.perf_counter() - started) / len(pool)
            consistent = denoise(pool, method="consistent")
            for name in CLIENTS:
                row = pool.index(name)
                started = time.perf_counter()
                fitted = by_pgm(pool.counts[row], float(plan.scale[0]), workload)
                seconds[1] += (time.perf_counter() - started) / len(CLIENTS)
                for key, found in (
                    ("released", pool.counts[row]),
                    ("consistent", consistent.counts[row]),
                    ("reference", reference.counts[row]),
                    ("pgm", fitted),
                ):
                    errors[key].append(distance(found.astype(float), counts[row], workload))
        means = [float(np.mean(errors[key])) for key in ("released", "consistent", "reference", "pgm")]
        print(
            f"{epsilon:7g}  {means[0]:11.4f}  {means[1]:17.4f}  {means[2]:9.4f}  {means[3]:11.4f}  "
            f"{seconds[0] / DRAWS:.4f}, {seconds[1] / DRAWS:.1f}"
        )


if __name__ == "__main__":
    main()
