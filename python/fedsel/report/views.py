"""What the templates show, section by section: ordered, shortened by stated rules, and laid out."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any

import numpy as np

from fedsel.report import wording
from fedsel.report.charts import histogram, traces
from fedsel.report.evidence import Evidence
from fedsel.selection.weights import COMPONENT_NAMES

MOST_CHIPS = 60
MOST_CLIENTS = 40
MOST_RUNNER_UPS = 10
MOST_CHAINS = 12
MOST_CELL_FIGURES = 14
_HIGH = 0.7  # of the colour scale: from here on text is set in the other colour


def views(evidence: Evidence) -> dict[str, Any]:
    """Return the templates' variables."""
    selection, pool = evidence.frame.selection, evidence.frame.pool
    names = selection.names
    title, remark = wording.certificate(selection)
    return {
        "selection": selection,
        "schema": pool.schema,
        "chips": names[:MOST_CHIPS],
        "more_chips": max(0, len(names) - MOST_CHIPS),
        "certificate": {"title": title, "remark": remark},
        "epsilon": wording.epsilon(selection),
        "warnings": wording.warnings(selection),
        "noisy": selection.privacy.exact < selection.privacy.clients,
        "members": _members(evidence),
        "comparison": _comparison(evidence),
        "information": _information(evidence),
        "near": _near(evidence),
        "convergence": _convergence(evidence),
        "parts": _parts(evidence),
        "privacy": _privacy(evidence),
        "digest": evidence.digest,
        "report_seed": evidence.seed,
        "workload": pool.workload,
        "rounds": sorted(set(pool.rounds)),
        "plans": _plans(evidence),
    }


def _members(evidence: Evidence) -> dict[str, Any]:
    found, chosen = evidence.contributions, evidence.frame.selection.loss
    swaps = [item for item in found.examined if item.replaced is not None]
    return {
        "examined": found.examined,
        "hidden": evidence.frame.k - len(found.examined),
        "outsiders": found.outsiders,
        "tried": found.tried,
        "chosen": chosen,
        "burdens": sum(item.without is not None and item.without < chosen - 1e-12 for item in found.examined),
        "best": min(swaps, key=lambda item: item.replaced or 0.0) if swaps else None,
    }


def _comparison(evidence: Evidence) -> dict[str, Any]:
    found = evidence.comparison
    return {
        "numbers": found,
        "standing": wording.standing(found),
        "chart": histogram(found.losses, found.chosen) if len(found.losses) > 1 else None,
        "lowest": float(found.losses.min()) if len(found.losses) else math.nan,
        "highest": float(found.losses.max()) if len(found.losses) else math.nan,
    }


def _information(evidence: Evidence) -> dict[str, Any]:
    found = evidence.information
    largest = max([1e-12, *(max(pair.federation, pair.pool) for pair in found.pairs)])

    def cells(matrix: Any) -> list[list[dict[str, Any] | None]]:
        rows: list[list[dict[str, Any] | None]] = []
        for row in matrix:
            # Most values are small: the root keeps them apart.
            shades = [None if math.isnan(value) else math.sqrt(max(0.0, value) / largest) for value in row]
            rows.append(
                [
                    None if shade is None else {"value": value, "shade": f"{shade:.3f}", "high": shade >= _HIGH}
                    for value, shade in zip(row.tolist(), shades, strict=True)
                ]
            )
        return rows

    pairs = sorted(found.pairs, key=lambda pair: -abs(pair.federation - pair.pool))
    return {
        "variables": list(zip(found.variables, found.roles, strict=True)),
        "federation": cells(found.federation),
        "pool": cells(found.pool),
        "figures": len(found.variables) <= MOST_CELL_FIGURES,
        "largest": largest,
        "pairs": [
            {
                "first": found.variables[pair.first],
                "second": found.variables[pair.second],
                "part": wording.PARTS[pair.part][0],
                "federation": pair.federation,
                "pool": pair.pool,
            }
            for pair in pairs
        ],
    }


def _near(evidence: Evidence) -> dict[str, Any]:
    found, clients = evidence.near_optimal, evidence.frame.pool.clients
    members = set(evidence.frame.members.tolist())
    order = sorted(range(len(clients)), key=lambda row: (-found.frequency[row], row not in members, row))
    met = [row for row in order if found.frequency[row] > 0]
    always = [row for row in met if found.frequency[row] == 1]
    if len(met) <= MOST_CLIENTS or len(always) == len(met):
        always = []  # there is room for all, or nothing else to tell
    shown = met[len(always) :][:MOST_CLIENTS]
    rest = order[len(always) + len(shown) :]
    return {
        "complete": found.complete,
        "count": len(found.losses),
        "span": float(found.losses[-1] - found.losses[0]),
        "deviation": evidence.comparison.deviation,
        "shown": [(clients[row], float(found.frequency[row]), row in members) for row in shown],
        "always": len(always),
        "rest": len(rest),
        "rest_largest": max((float(found.frequency[row]) for row in rest), default=0.0),
    }


def _convergence(evidence: Evidence) -> dict[str, Any]:
    selection = evidence.frame.selection
    names = set(selection.names)
    ordered = sorted(selection.chains, key=lambda chain: chain.loss)
    drawn = [chain for chain in ordered if chain.trace][:MOST_CHAINS]
    losses = [chain.loss for chain in selection.chains]
    return {
        "chart": traces([chain.trace for chain in drawn]) if drawn else None,
        "drawn": len(drawn),
        "chains": ordered[:MOST_CHAINS],
        "chain_mean": float(np.mean(losses)) if losses else math.nan,
        "chain_deviation": float(np.std(losses, ddof=1)) if len(losses) > 1 else math.nan,
        "runner_ups": [
            {
                "loss": other.loss,
                "gap": other.loss - selection.loss,
                "leave": [name for name in selection.names if name not in set(other.members)],
                "enter": [name for name in other.members if name not in names],
            }
            for other in selection.runner_ups[:MOST_RUNNER_UPS]
        ],
    }


def _parts(evidence: Evidence) -> list[dict[str, Any]]:
    selection, comparison = evidence.frame.selection, evidence.comparison
    sums = asdict(selection.components)
    factors = dict(zip(COMPONENT_NAMES, selection.weights.signed.tolist(), strict=True))
    products = {name: factors[name] * sums[name] for name in COMPONENT_NAMES}
    largest = max([1e-12, *map(abs, products.values())])
    usual = comparison.components.mean(axis=0).tolist() if len(comparison.losses) else [math.nan] * 4
    return [
        {
            "name": wording.PARTS[name][0],
            "meaning": wording.PARTS[name][1],
            "sum": sums[name],
            "weight": factors[name],
            "product": products[name],
            "length": f"{50 * abs(products[name]) / largest:.2f}",
            "usual": average,
        }
        for name, average in zip(COMPONENT_NAMES, usual, strict=True)
    ]


def _privacy(evidence: Evidence) -> dict[str, Any]:
    pool = evidence.frame.pool
    return {
        "tables": len(pool.workload.sets),
        "cells": pool.workload.cells,
        "sizes_public": pool.schema.sizes == "public",
        "rows_known": sum(rows is not None for rows in pool.rows),
    }


def _plans(evidence: Evidence) -> list[dict[str, Any]]:
    pool = evidence.frame.pool
    index = np.array(pool.plan_index)
    return [
        {
            "plan": plan,
            "clients": int((index == number).sum()),
            "exact": plan.mechanism == "none",
            "low": float(plan.scale.min()),
            "high": float(plan.scale.max()),
        }
        for number, plan in enumerate(pool.plans)
    ]
