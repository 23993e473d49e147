from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from fedsel import Schema, Variable, encode
from fedsel.errors import DataError, TrainingError
from fedsel.training.data import ClientData, FederatedData
from fedsel.training.task import NumericInput, Task
from training_samples import made_client, made_data, made_schema, made_task


def test_inputs_are_all_variables_but_the_target():
    task = made_task()
    assert task.inputs == ("colour", "size", "sex")
    assert task.offsets.tolist() == [0, 3, 5, 7]
    assert Task.of(made_schema(), sensitive_inputs=False).inputs == ("colour", "size")
    assert Task.of(made_schema(), privileged="f").privileged == 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"sensitive": "colour"}, "sensitive attribute must be one of sex, got 'colour'"),
        ({"privileged": "woman"}, "privileged group must be one of m, f, got 'woman'"),
    ],
)
def test_unknown_attributes_and_groups_are_refused(change, message):
    with pytest.raises(TrainingError, match=message):
        Task.of(made_schema(), **change)


def test_the_target_must_have_two_categories():
    schema = made_schema()
    three = Variable(name="outcome", role="target", categories=(0, 1, 2))
    with pytest.raises(TrainingError, match="target outcome: must have two categories, got 3"):
        Task.of(Schema(name="s", variables=(*schema.variables[:-1], three)))
    with pytest.raises(TrainingError, match="needs a target"):
        Task.of(Schema(name="s", variables=schema.variables[:-1]))
    with pytest.raises(TrainingError, match="needs a sensitive attribute"):
        Task.of(Schema(name="s", variables=(schema.variables[0], schema.variables[-1])))


def frame():
    return pd.DataFrame(
        {"colour": ["red", "blue"], "size": [2, 1], "sex": ["f", "m"], "outcome": [True, False], "age": [30.0, 50.0]}
    )


def test_raw_rows_become_codes_and_standardised_numbers():
    task = Task.of(made_schema(), numeric=[NumericInput("age", centre=40, scale=10)])
    client = ClientData.of_rows("north", task, frame())
    assert client.codes.tolist() == [[0, 1, 1], [2, 0, 0]]
    assert client.numeric.tolist() == [[-1.0], [1.0]]
    assert client.target.tolist() == [True, False]
    assert client.group.tolist() == [1, 0]


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_a_number_that_is_not_finite_is_refused_by_name(bad):
    task = Task.of(made_schema(), numeric=[NumericInput("age", centre=40, scale=10)])
    rows = frame()
    rows.loc[1, "age"] = bad
    with pytest.raises(TrainingError, match="client 'north': row 2: age must be a finite number"):
        ClientData.of_rows("north", task, rows)
    with pytest.raises(TrainingError, match="client 'north': no column age"):
        ClientData.of_rows("north", task, rows.drop(columns="age"))
    with pytest.raises(TrainingError, match="client 'north': age must hold numbers"):
        ClientData.of_rows("north", task, rows.assign(age="old"))


def test_a_missing_category_is_refused_by_the_schema():
    with pytest.raises(DataError, match="client 'north': row 1: size"):
        ClientData.of_rows("north", made_task(), frame().assign(size=np.nan))


@pytest.mark.parametrize(
    "number", [("age", 0.0, 0.0), ("age", 0.0, float("inf")), ("age", float("nan"), 1.0), ("age", 0.0, -1.0)]
)
def test_constants_must_be_usable(number):
    with pytest.raises(TrainingError, match="numeric input age"):
        NumericInput(*number)


def test_codes_out_of_range_are_refused_by_name():
    good = made_client("c0", 5)
    codes = good.codes.copy()
    codes[3, 0] = 3
    with pytest.raises(TrainingError, match="client 'c0': row 4: colour must be between 0 and 2, got 3"):
        ClientData("c0", good.task, codes, good.numeric, good.target, good.group)
    with pytest.raises(TrainingError, match=r"client 'c0': group: expected shape \(5,\), got \(4,\)"):
        ClientData("c0", good.task, good.codes, good.numeric, good.target, good.group[:4])


def test_clients_are_ordered_by_name():
    a, b = made_client("a", 3), made_client("b", 4)
    data = FederatedData([b, a])
    assert data.names == ("a", "b")
    assert data.rows.tolist() == [3, 4]
    assert data["b"] is b
    assert data.subset(["b"]).names == ("b",)


def test_clients_of_different_schemas_are_refused():
    a = made_client("a", 3)
    other = Task.of(made_schema(name="another"))
    b = made_client("b", 3, task=other)
    with pytest.raises(TrainingError, match=r"clients 'a' and 'b' differ: .*name"):
        FederatedData([a, b])
    c = made_client("c", 3, task=Task.of(made_schema(), privileged="f"))
    with pytest.raises(TrainingError, match="clients 'a' and 'c' differ: privileged"):
        FederatedData([a, c])


def test_unknown_and_repeated_clients_are_refused():
    data = made_data([3, 4])
    with pytest.raises(TrainingError, match="the data hold no client 'c9'; they hold c0, c1"):
        data.subset(["c9"])
    with pytest.raises(TrainingError, match="member 'c1' is given twice"):
        data.subset(["c1", "c1"])
    with pytest.raises(TrainingError, match="at least one member, got none"):
        data.subset([])
    with pytest.raises(TrainingError, match="client 'c0' occurs twice"):
        FederatedData([*data.clients, data.clients[0]])
    with pytest.raises(TrainingError, match="at least one client, got none"):
        FederatedData([])


def test_frames_become_clients():
    data = FederatedData.of_frames(made_task(), {"south": frame(), "north": frame().iloc[:1]})
    assert data.names == ("north", "south")
    assert data.rows.tolist() == [1, 2]


def test_encoded_rows_keep_their_order():
    codes = encode(made_schema(), frame())
    assert ClientData.of_codes("north", made_task(), codes).target.tolist() == [True, False]
    with pytest.raises(TrainingError, match=r"client 'north': numeric: expected shape \(2, 1\), got \(2, 2\)"):
        ClientData.of_codes("north", made_task(numeric=1), codes, np.zeros((2, 2)))
