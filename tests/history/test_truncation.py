"""Tables that a kill left ahead of each other end with the last round that all of them hold."""

import pyarrow.parquet as pq
import pytest

from fedsim import Scenario, read_run, run, simulate
from fedsim.history.truncation import truncated
from fedsim.results import recording, report, status_of
from tests.support.run_folders import rewrite

FLAT = Scenario(
    name="ahead",
    crowd={"clients": 8},
    learning="none",
    network="pause-two-speed",
    devices={"compute": "zero"},
    rounds={"count": 6},
    selector={"kind": "uniform", "cohort": 3},
)
EDGES = FLAT.replace({"rounds.edges": {"grouping": {"kind": "order", "count": 2}, "rounds": 2, "backhaul": "none"}})


@pytest.mark.parametrize("scenario", [FLAT, EDGES])
@pytest.mark.parametrize("held", [0, 1, 4, 6])
def test_what_is_left_is_the_run_of_so_many_rounds(scenario, held):
    """Expected: a run of the same scenario with that number of rounds. Synchronous rounds do not know their number."""
    tables = simulate(scenario).tables()
    found = truncated({**tables, "rounds": tables["rounds"].slice(0, held)})
    assert found["rounds"].num_rows == held
    if held:
        expected = simulate(scenario.replace({"rounds.count": held})).tables()
        assert found.keys() == expected.keys()
        for name, table in expected.items():
            # Whether an update was used is known after the last round of the shorter run as well.
            assert found[name].equals(table), name
    else:
        assert found["participations"].num_rows == 0


@pytest.mark.parametrize("scenario", [FLAT, EDGES])
def test_a_folder_of_format_2_that_was_killed_between_two_tables_is_read_and_reported(scenario, tmp_path, monkeypatch):
    monkeypatch.setattr(recording, "draw", lambda *_, **__: None)
    run(scenario, tmp_path)
    file = tmp_path / "rounds.parquet"
    pq.write_table(pq.read_table(file).slice(0, 4), file)
    rewrite(tmp_path, "written", "planned", "tables", format=2, status="running", rounds=4)
    history = read_run(tmp_path)
    assert history.column("rounds", "round").tolist() == [1, 2, 3, 4]
    assert status_of(tmp_path) == "killed"
    assert report(history, every_round=True)[0].lines[0] == ("status", "killed after 4 rounds")
    assert report(history)[1].title.startswith("time and bits")
