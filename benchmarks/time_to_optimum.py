"""Evaluations and milliseconds until each search reaches the best known federation of the 46 states.

    python benchmarks/time_to_optimum.py > optimum.json

Medians over seeds; one thread. Expansion search is run to its end, since it certifies what it ends at. Annealing is one
chain: evaluations until the chain first holds the best known federation, found by running the same seed under a rising
cap. The milliseconds are those of the whole call under that cap.
"""

from __future__ import annotations

import json
import math
import statistics
from dataclasses import replace

from fedsel import FederationLoss, GeometricSchedule, select
from fedsel.datasets.example import load_example
from fedsel.privacy.calibration import plan_noise
from fedsel.selection import methods
from fedsel.selection.constraints import Ruleset
from fedsel.selection.methods import Effort, Task

SEEDS, CAPS = 50, [int(100 * 1.25**step) for step in range(25)]
ROUNDING = 1e-11


def first_cap(search, task, effort, schedule, best):
    """Return (cap, milliseconds) of the first cap under which the search finds the best; None if none does."""
    for cap in CAPS:
        found = search(task, effort, schedule=replace(schedule, max_evaluations=cap), chains=1)
        if found.best[0][0] <= best + ROUNDING:
            return found.evaluations, found.seconds * 1e3
    return None


def summary(hits):
    reached = [hit for hit in hits if hit is not None]
    if not reached:
        return {"reached": 0}
    return {
        "reached": len(reached) / len(hits),
        "evaluations": statistics.median(evaluations for evaluations, _ in reached),
        "milliseconds": statistics.median(milliseconds for _, milliseconds in reached),
    }


def main():
    example = load_example()
    pool = example.pool(plan_noise(len(example.workload.sets), epsilon=math.inf), seed=0)
    loss = FederationLoss(pool)
    results = {}
    for k in (5, 10, 15):
        task = Task.of(loss, k, Ruleset((), (), ()))
        best = select(pool, k, certificate="model").loss
        hits = {"expand": [], "model": [], "fitted schedule": [], "schedule of the paper": []}
        for seed in range(SEEDS):
            effort = Effort(seed=seed, threads=1, time_limit=math.inf, keep=1, progress=None)
            expanded = methods.expand(task, effort)
            reached = expanded.best[0][0] <= best + ROUNDING
            hits["expand"].append((expanded.evaluations, expanded.seconds * 1e3) if reached else None)
            fitted = methods.fit_schedule(task, seed=seed)
            modelled = methods.anneal_model(task, effort, schedule=fitted, chains=1)
            reached = modelled.best[0][0] <= best + ROUNDING
            hits["model"].append((modelled.evaluations, modelled.seconds * 1e3) if reached else None)
            hits["fitted schedule"].append(first_cap(methods.anneal, task, effort, fitted, best))
            paper = GeometricSchedule()
            hits["schedule of the paper"].append(first_cap(methods.anneal, task, effort, paper, best))
        results[k] = {name: summary(values) for name, values in hits.items()}
    print(json.dumps(results, indent=2))


if __name__ == "__main__":
    main()
