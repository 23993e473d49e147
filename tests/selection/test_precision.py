from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fedsel import LossWeights, Workload
from fedsel.datasets.example import load_example
from fedsel.errors import SelectionError
from fedsel.privacy.calibration import certify, plan_noise
from fedsel.selection.precision import table_precisions
from reference import made_schema


def test_precisions_follow_the_square_root_of_the_weights():
    schema = made_schema([3, 4, 5, 2])
    workload = Workload.pairs(schema)
    found = table_precisions(schema, workload, precision="loss", weights=LossWeights(4.0, 1.0, 0.25, 2.25))
    assert workload.label(2) == "v0 x v3"
    # v0 x v1, v0 x v2 (proxy bias), v0 x v3 (direct bias), v1 x v2 (redundancy), v1 x v3, v2 x v3 (signal)
    assert found == (50, 50, 100, 25, 75, 75)
    assert table_precisions(schema, workload) is None


def test_tables_that_the_loss_does_not_use_get_the_least():
    schema = made_schema([3, 4, 2], sensitive=(0, 1))
    workload = Workload(schema.names, schema.domain, ((0,), (0, 1), (0, 2), (1, 2)))
    found = table_precisions(schema, workload, precision="loss", sensitive=("v0", "v1"))
    assert found == (1, 1, 100, 100)


def test_the_guarantee_is_the_same():
    example = load_example()
    weights = table_precisions(example.schema, example.workload, precision="loss")
    plan = plan_noise(55, epsilon=1.0, weights=weights)
    assert certify(plan) <= 1e-5
    equal = plan_noise(55, epsilon=1.0)
    # One record moves the loss of the whole release as far: the sums of inverse variances agree.
    assert np.sum(plan.scale**-2.0) == pytest.approx(np.sum(equal.scale**-2.0), rel=1e-3)
    direct = example.workload.sets.index(tuple(sorted(example.schema.names.index(name) for name in ("SEX", "PINCP"))))
    assert plan.scale[direct] == plan.scale.min() < equal.scale[0]


def test_bad_requests_are_refused():
    schema = made_schema([3, 4, 2], sensitive=())
    with pytest.raises(SelectionError, match="needs a variable of role sensitive"):
        table_precisions(schema, Workload.pairs(schema), precision="loss")
    with pytest.raises(SelectionError, match="precision must be one of equal, loss, got 'best'"):
        table_precisions(replace(schema), Workload.pairs(schema), precision="best")
