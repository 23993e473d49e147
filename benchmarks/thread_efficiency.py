"""How much of a second thread searches make use of: work a second on two threads over twice that on one.

    python benchmarks/thread_efficiency.py

Each job takes some 40 ms on one thread; one and two threads take turns, and the best of all rounds counts, since the
machine may have other things to do. Processor time says what the threads cost each other apart from that.
"""

from __future__ import annotations

import math
import os
import resource
import time

import numpy as np

from fedsel import FederationLoss, _core
from fedsel.experiments.population import example_population
from fedsel.selection.constraints import Ruleset
from fedsel.selection.methods import Task

ROUNDS, K = 100, 10


def jobs():
    """Name and function of each job, by threads."""
    loss = FederationLoss(example_population().pool())
    task = Task.of(loss, K, Ruleset((), (), ()))
    effort = {"keep": 6, "seed": 0, "initial_states": [], "time_limit": math.inf, "progress": None}
    cooling = np.geomspace(0.05, 1e-4, 300).tolist()
    rng = np.random.default_rng(0)
    federations = np.array([rng.choice(46, K, replace=False) for _ in range(10_000)], dtype=np.uint32)

    def anneal(chains):
        steps = {"evaluations_per_level": 30, "max_evaluations": 2**62}
        return lambda threads: _core.anneal(
            task.problem, temperatures=cooling, chains=chains, threads=threads, **steps, **effort
        )

    def temper(chains):
        ladder = np.geomspace(0.05, 1e-4, chains).tolist()
        return lambda threads: _core.temper(
            task.problem, temperatures=ladder, evaluations_per_round=500, rounds=16, threads=threads, **effort
        )

    return {
        "4 independent chains": anneal(4),
        "5 independent chains": anneal(5),
        "replica exchange, 5 temperatures": temper(5),
        "replica exchange, 6 temperatures": temper(6),
        "10,000 federations evaluated": lambda threads: loss.model.components(federations, threads),
    }


def processor_seconds():
    """Processor time of this process."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def main() -> None:
    print(f"load average {os.getloadavg()[0]:.1f}, {os.cpu_count()} processors, best of {ROUNDS}\n")
    print("| job | one thread | efficiency on two | processor time, two over one |")
    print("|---|---|---|---|")
    for name, job in jobs().items():
        wall, processor = {1: math.inf, 2: math.inf}, {1: math.inf, 2: math.inf}
        for _ in range(ROUNDS):
            for threads in (1, 2):
                began, used = time.perf_counter(), processor_seconds()
                job(threads)
                wall[threads] = min(wall[threads], time.perf_counter() - began)
                processor[threads] = min(processor[threads], processor_seconds() - used)
        print(
            f"| {name} | {wall[1] * 1e3:.0f} ms | {wall[1] / wall[2] / 2:.1%} | {processor[2] / processor[1]:.2f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
