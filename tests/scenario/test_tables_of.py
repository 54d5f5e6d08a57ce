"""A row that no run could use is refused before the run, by its row; rows that are not used are noted."""

import pytest

from fedsim import Scenario
from fedsim.errors import DataError, ScenarioError
from fedsim.scenario.tables_of import read_tables

SECOND = {"kind": "constant", "value_s": 1.0}
TABLES = {
    "name": "t",
    "crowd": {"clients": 2},
    "network": {"kind": "latency", "downlink": SECOND, "uplink": SECOND},
    "selector": "all",
    "learning": {"kind": "none", "downlink_bits": 1e4, "uplink_bits": 1e4, "samples_per_client": 1},
    "rounds": {"count": 1, "policy": {"kind": "deadline", "deadline_s": 9.0}},
}
PLACES = {"crowd.placement": {"kind": "file", "path": "t.csv"}, "network": "cell"}
RATES = {
    "kind": "rate-traces",
    "delay_s": 0.0,
    **{way: {"path": "t.csv", "time": "time_s"} for way in ("downlink", "uplink")},
}
SPANS = {"devices.availability": {"kind": "traces", "path": "t.csv", "after": "none"}}
SPEEDS = {"devices.compute": {"kind": "rate", "samples_per_s": {"column": "speed_per_s", "path": "t.csv"}}}
SPLIT = {
    "learning": {
        "kind": "supervised",
        "data": "digits",
        "model": "logistic-regression",
        "split": {"kind": "file", "path": "t.csv"},
        "local": {"learning_rate": 0.1, "epochs": 1, "batch_size": 10},
    }
}


@pytest.mark.parametrize(
    ("values", "table", "said"),
    [
        (PLACES, "client,x_m,y_m\n0,1,2\n1,here,2\n", r"crowd.placement.path: .*t.csv: x_m, row 2: 'here'"),
        ({"network": RATES}, "time_s,rate_bps\n0,1\nnoon,1\n", r"t.csv: time_s, row 2: 'noon'"),
        ({"network": RATES}, "client,time_s,rate_bps\n0,0,1\n0,1,1\n7,0,1\n7,1,1\n", "there is no row of client 1"),
        (SPANS, "client,start_s,end_s\n0,1,2\n1,5,4\n", r"devices.availability.path: .*t.csv: end_s, row 2: '4'"),
        (SPEEDS, "client,speed_per_s\n0,1\n0,2\n", "client, row 2: client 0 has a row before"),
        (SPLIT, "client\n0\n2\n", r"learning.split.path: .*t.csv: client, row 2: '2' is not allowed; allowed: whole"),
    ],
)
def test_a_row_that_cannot_be_used_is_refused_before_the_run(tmp_path, monkeypatch, values, table, said):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.csv").write_text(table)
    with pytest.raises((DataError, ScenarioError), match=said):
        read_tables(Scenario(**TABLES).replace(values))


def test_rows_of_no_client_are_noted_and_other_files_are_left_alone(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.csv").write_text("client,start_s,end_s\n0,1,2\n1,1,2\n2,1,2\n")
    assert read_tables(Scenario(**TABLES).replace(SPANS)) == (
        "devices.availability.path: t.csv: 1 of 3 rows not used: they are of no client of 2",
    )
    assert read_tables(Scenario(**TABLES)) == ()
    monkeypatch.setenv("FEDSIM_DATA", str(tmp_path))
    lacking = read_tables(
        Scenario(**TABLES).replace({"learning": SPLIT["learning"] | {"data": "mnist", "split": "equal"}})
    )
    assert lacking[0].startswith("learning.data: mnist is not in")
    assert "or fetch it: fedsim data mnist --download" in lacking[0]
