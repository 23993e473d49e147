from __future__ import annotations

import numpy as np

from fedsel.datasets.latent import DOMAIN, latent_rows, latent_schema
from fedsel.tables import Workload, count


def test_rows_fit_the_schema_and_repeat():
    schema = latent_schema()
    assert schema.domain == DOMAIN
    assert schema.target == "v10"
    assert schema.sensitive == ("v8",)
    made = dict(latent_rows(1, clients=4, median_rows=200))
    again = dict(latent_rows(1, clients=4, median_rows=200))
    assert list(made) == ["m000", "m001", "m002", "m003"]
    for client, columns in made.items():
        assert 25 <= len(columns[0]) <= 2000
        assert count(columns, Workload.pairs(schema)).counts.sum() == 55 * len(columns[0])
        assert all(np.array_equal(a, b) for a, b in zip(columns, again[client], strict=True))


def test_clients_differ_more_where_they_should():
    def spread(heterogeneity):
        shares = [
            np.bincount(columns[6], minlength=18) / len(columns[6])
            for _, columns in latent_rows(2, clients=20, heterogeneity=heterogeneity, median_rows=2000)
        ]
        return np.std(shares, axis=0).mean()

    assert spread(1.0) > 1.5 * spread(0.05)
