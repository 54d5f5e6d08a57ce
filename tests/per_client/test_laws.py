"""Laws of values that clients draw once, and columns of tables of clients."""

import math

import numpy as np
import pytest
from hypothesis import given, strategies as st
from pydantic import ValidationError
from scipy import stats

from fedsim.errors import DataError
from fedsim.inputs.tables import reading
from fedsim.per_client import CLIENT_LAWS
from fedsim.per_client.laws import Choice, Column, LogNormal, Normal, Uniform
from fedsim.streams import Streams
from tests.support.bounds import dkw

CLIENTS = 20_000


def within(law, low, high):
    """Return the distribution function of a law given that a value lies between two limits."""
    return lambda x: (law.cdf(x) - law.cdf(low)) / (law.cdf(high) - law.cdf(low))


@pytest.mark.parametrize(
    ("law", "cdf"),
    [
        (Uniform(least=2.0, greatest=5.0), stats.uniform(2.0, 3.0).cdf),
        (LogNormal(median=100.0, sigma=0.5), stats.lognorm(0.5, scale=100.0).cdf),
        (LogNormal(median=1.0, sigma=1.0, least=0.5, greatest=3.0), within(stats.lognorm(1.0), 0.5, 3.0)),
        (Normal(mean=3.0, std=2.0), stats.norm(3.0, 2.0).cdf),
        (Normal(mean=3.0, std=2.0, least=2.0, greatest=4.5), within(stats.norm(3.0, 2.0), 2.0, 4.5)),
    ],
)
def test_values_follow_the_law(law, cdf):
    values, (low, high) = law.values(CLIENTS, Streams(1), "a.b"), law.limits()
    assert stats.kstest(values, cdf).statistic < dkw(CLIENTS)
    assert np.all((low <= values) & (values <= high))


def test_classes_of_devices_are_drawn_in_proportion():
    values = Choice(of=(1.0, 5.0, 20.0), weights=(1.0, 0.0, 3.0)).values(CLIENTS, Streams(1), "a")
    share = {value: float(np.mean(values == value)) for value in (1.0, 5.0, 20.0)}
    error = math.sqrt(0.25 * 0.75 / CLIENTS)
    assert share[5.0] == 0
    assert share[1.0] == pytest.approx(0.25, abs=5 * error)
    assert set(Choice(of=(3.0, 4.0)).values(50, Streams(1), "a")) == {3.0, 4.0}


@given(
    st.integers(1, 40),
    st.integers(0, 40),
    st.sampled_from(
        [
            {"kind": "uniform", "least": 0.0, "greatest": 1.0},
            {"kind": "log-normal", "median": 1.0, "sigma": 2.0},
            {"kind": "normal", "mean": 0.0, "std": 1.0},
            {"kind": "choice", "of": [1.0, 2.0, 3.0]},
        ]
    ),
)
def test_a_further_client_changes_no_value_and_another_field_all(clients, more, table):
    law = CLIENT_LAWS.make(table)
    few = law.values(clients, Streams(5), "x")
    np.testing.assert_array_equal(few, law.values(clients + more, Streams(5), "x")[:clients])
    if clients > 10 and table["kind"] != "choice":
        assert np.all(few != law.values(clients, Streams(5), "y"))


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({"kind": "uniform", "least": 2.0, "greatest": 1.0}, "least = 2.0 is not allowed; it must be at most"),
        ({"kind": "normal", "mean": 0.0, "std": 1.0, "least": 40.0}, "less than 1e-9 of the law"),
        ({"kind": "normal", "mean": 0.0, "std": 0.0, "least": 1.0}, "less than 1e-9 of the law"),
        ({"kind": "log-normal", "median": 1.0, "sigma": 1.0, "least": 3.0, "greatest": 2.0}, "less than 1e-9"),
        ({"kind": "choice", "of": [1.0], "weights": [1.0, 2.0]}, "one for each of 'of'"),
        ({"kind": "choice", "of": [1.0], "weights": [0.0]}, "not all 0"),
        ({"kind": "uniform", "least": 1e300, "greatest": 1e300}, "less than or equal to 10{30}"),
    ],
)
def test_laws_without_values_are_refused(table, said):
    with pytest.raises(ValidationError, match=said):
        CLIENT_LAWS.make(table)


def test_a_unit_in_the_name_of_a_column_is_made_that_of_the_field(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("device_ms,delay (ms),samples_per_ms\n7,20,3\n8,500,4\n")
    law = {name: Column(column=name, path=str(path)) for name in ("delay (ms)", "Delay", "samples_per_ms")}
    assert law["delay (ms)"].values(2, Streams(0), "network.delay_s").tolist() == [0.02, 0.5]
    with reading() as run:
        assert law["Delay"].values(2, Streams(0), "network.delay_s").tolist() == [0.02, 0.5]
    assert "in the unit of the field" not in "".join(run.notes)
    with pytest.raises(DataError, match="samples_per_ms is in no unit of samples/s; allowed"):
        law["samples_per_ms"].values(2, Streams(0), "a.samples_per_s")
    assert law["delay (ms)"].values(2, Streams(0), "a.load").tolist() == [20, 500], "a field without a unit"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("sped\n1\n2\n", r"a\.b: .*t\.csv: there is no column 'speed' \(did you mean 'sped'\?\); its columns: sped"),
        ("speed\n1\n", "has 1 rows; there must be one for each of the 2 clients"),
        ("speed\nx\ny\n", "speed, row 1: 'x' is not allowed; allowed: numbers"),
        ("speed,b\n1,1\n,2\n", "speed, row 2: nothing is not allowed"),
    ],
)
def test_tables_that_do_not_fit_are_refused_by_field_file_row_and_client(tmp_path, text, said):
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(DataError, match=said):
        Column(column="speed", path=str(tmp_path / "t.csv")).values(2, Streams(0), "a.b")
