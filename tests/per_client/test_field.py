"""Fields that hold a number for all clients, a list, a law or a column."""

from typing import Annotated

import numpy as np
import pytest

from fedsim import Component, Scenario, simulate
from fedsim.errors import DataError, ScenarioError
from fedsim.per_client import ClientValues, PerClient, at, values_of
from fedsim.streams import Streams

UNIFORM = {"kind": "uniform", "least": 10.0, "greatest": 20.0}
TABLES = {
    "name": "per-client",
    "crowd": {"clients": 3},
    "learning": {"kind": "none", "model_bits": 1e6, "samples_per_client": 10, "flops_per_sample": 1e6},
    "network": "pause-two-speed",
    "devices": {"compute": {"kind": "rate", "samples_per_s": 5.0, "jitter_sigma": 0.0}},
    "rounds": {"count": 2, "policy": {"kind": "deadline", "deadline_s": 1e3}},
    "selector": "all",
}


class Part(Component):
    """A part with a whole number and a share for each client."""

    number: Annotated[ClientValues, PerClient(ge=1, whole=True)] = 1
    share: Annotated[ClientValues, PerClient(ge=0, lt=1)] | None = None
    wait_s: Annotated[ClientValues, PerClient(ge=0)] = 1.0


def scenario(**values):
    return Scenario(**TABLES).replace({path.replace("__", "."): value for path, value in values.items()})


def test_a_number_stays_a_number_and_a_list_is_one_for_each():
    assert values_of(Part(number=3), "number", 5, Streams(0), "p") == 3.0
    listed = values_of(Part(share=[0.1, 0.2]), "share", 2, Streams(0), "p")
    assert listed.tolist() == [0.1, 0.2]
    assert at(listed, np.array([1, 1, 0])).tolist() == [0.2, 0.2, 0.1]
    assert at(0.5, np.array([1])) == 0.5


def test_what_a_law_draws_is_rounded_to_whole_numbers():
    part = Part(number={"kind": "uniform", "least": 1.0, "greatest": 4.0})
    drawn = values_of(part, "number", 1000, Streams(0), "p")
    assert set(drawn) == {1.0, 2.0, 3.0, 4.0}


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ([10.0, -1.0, 3.0], r"devices\.compute\.samples_per_s\.1: -1\.0 is not allowed; .*greater than 0"),
        ([10.0, "x", 3.0], r"samples_per_s\.1: 'x' is not allowed"),
        ([], "a list has one number for each client"),
        (-1.0, r"samples_per_s: -1\.0 is not allowed; .*greater than 0"),
        ([1e13, 1.0, 1.0], r"samples_per_s: 10000000000000\.0 is not allowed; allowed: absolute values from 1e-09"),
        ({"kind": "unifrom", "least": 1.0}, r"no law of clients 'unifrom' \(did you mean 'uniform'"),
        (
            {"kind": "normal", "mean": 1.0, "std": 1.0},
            "its values lie between -inf and inf; they must be numbers above 0",
        ),
        ({"kind": "uniform", "least": 1.0}, r"samples_per_s\.greatest: is missing"),
        ({"path": "x.csv"}, r"samples_per_s\.column: is missing"),
        ({"column": "x", "path": "x.csv", "row": 3}, r"samples_per_s\.row: there is no such option"),
    ],
)
def test_wrong_values_are_refused_when_a_scenario_is_made(value, said):
    with pytest.raises(ScenarioError, match=said):
        scenario(devices__compute={"kind": "rate", "samples_per_s": value})


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("samples_per_s", [1.0, 2.0], "a list of 2 values is not allowed; there must be one for each of the 3 clients"),
        (
            "samples_per_s",
            {"column": "speed", "path": "t.csv"},
            r"client 1: -2\.0 \(of .*t\.csv, column 'speed'\) is not allowed",
        ),
        (
            "samples_per_s",
            {"column": "great", "path": "t.csv"},
            r"client 2: 1000000000000000\.0 .*allowed: absolute values from 1e-09",
        ),
        (
            "samples_per_s",
            {"kind": "log-normal", "median": 1e-9, "sigma": 5.0},
            r"samples_per_s: client \d: .*e-\d+ is not allowed; allowed: absolute values from 1e-09 to 1e\+12",
        ),
    ],
)
def test_wrong_values_are_refused_before_work_starts(tmp_path, monkeypatch, field, value, said):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.csv").write_text("speed,great\n1,1\n-2,1\n3,1e15\n")
    made = scenario(devices__compute={"kind": "rate", field: value})
    with pytest.raises((ScenarioError, DataError), match=said):
        simulate(made)


def test_a_column_of_whole_numbers_holds_whole_numbers(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("n\n1\n2.5\n3\n")
    with pytest.raises(ScenarioError, match=r"client 1: 2\.5 .* allowed: whole numbers at least 1"):
        simulate(scenario(learning__samples_per_client={"column": "n", "path": str(path)}))
    path.write_text("client,n\n0,1e11\n1,5\n2,5\n")
    notes = simulate(scenario(devices__compute__samples_per_s={"column": "n", "path": str(path)})).notes
    where = "devices.compute.samples_per_s: t.csv: "
    assert f"{where}n is read in the unit of the field, samples/s: its name states none" in notes
    assert f"{where}1e+11 samples/s is unusual; usual: 1e-06 to 1e+09 samples/s; is the unit right?" in notes


def test_a_scenario_with_lists_laws_and_columns_is_written_and_read(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("n\n1\n2\n3\n")
    made = scenario(
        devices__compute={"kind": "rate", "samples_per_s": [1.0, 2.0, 3.0]},
        devices__energy={"kind": "battery", "capacity_j": UNIFORM, "compute_w": 1.0, "least_charge": [0.1, 0.2, 0.3]},
        learning__samples_per_client={"column": "n", "path": str(path)},
    )
    assert Scenario.from_toml(made.to_toml()) == made
    assert list(made.files()) == ["learning.samples_per_client.path"]
    before = made.digest()
    path.write_text("n\n1\n2\n4\n")
    assert made.digest() != before
    assert made.describe()["devices"]["energy"]["capacity_j"] == UNIFORM


def test_own_speeds_are_not_spread_unless_asked_for():
    listed = scenario(devices__compute={"kind": "rate", "samples_per_s": [1.0, 2.0, 4.0], "jitter_sigma": 0.0})
    assert listed.devices.compute.spread_sigma == 0.0
    history = simulate(listed)
    assert history.column("clients", "samples_per_s") == pytest.approx([1.0, 2.0, 4.0])
    assert history.column("participations", "compute_s")[:3] == pytest.approx([10.0, 5.0, 2.5])
    spread = {"kind": "rate", "samples_per_s": [1.0, 2.0, 4.0], "spread_sigma": 0.3}
    assert scenario(devices__compute=spread).devices.compute.spread_sigma == 0.3
    assert scenario(devices__compute={"kind": "rate", "samples_per_s": 1.0}).devices.compute.spread_sigma == 0.5
    flops = scenario(devices__compute={"kind": "flops", "flops_per_s": [1e6, 2e6, 4e6], "jitter": "fixed"})
    # 10 samples of 1e6 operations each.
    assert simulate(flops).column("participations", "compute_s")[:3] == pytest.approx([10.0, 5.0, 2.5])


def test_samples_and_loads_of_each_client():
    compute = {"kind": "flops", "flops_per_s": 1e6, "spread": "fixed", "jitter": "fixed", "load": [0.0, 0.25, 0.4]}
    history = simulate(scenario(devices__compute=compute, learning__samples_per_client=[1, 2, 3]))
    assert history.column("clients", "samples").tolist() == [1, 2, 3]
    # The mean slowdown (1 - load) / (1 - 2 load) is 1, 1.5 and 3.
    assert history.column("clients", "samples_per_s") == pytest.approx([1.0, 1 / 1.5, 1 / 3])
    work_s = history.column("participations", "compute_s")[:3]
    assert work_s[0] == pytest.approx(1.0)
    assert np.all(work_s[1:] > [2.0, 3.0])


def test_batteries_of_each_client():
    energy = {
        "kind": "battery",
        "capacity_j": [100.0, 200.0, 50.0],
        "receive_j_per_bit": 0.0,
        "transmit_j_per_bit": [0.0, 1e-6, 0.0],
        "compute_w": [1.0, 2.0, 3.0],
        "charge_w": [0.0, 1.0, 0.0],
        "idle_w": 0.5,
        "least_charge": [0.5, 0.1, 0.9],
    }
    history = simulate(scenario(devices__energy=energy, results__audit=True))
    assert history.column("clients", "capacity_j").tolist() == [100.0, 200.0, 50.0]
    assert history.column("clients", "charge_j").tolist() == [100.0, 200.0, 50.0]
    # The work lasts about 2 s (a spread of speeds); watts times seconds, and 1e6 bits at a microjoule each.
    work_s, energy_j = (history.column("participations", name) for name in ("compute_s", "energy_j"))
    assert energy_j[:3] == pytest.approx(work_s[:3] * [1.0, 2.0, 3.0] + [0.0, 1.0, 0.0])
