"""Every run checks its tables: a violation ends it, is named, and takes no row with it."""

import json
import re

import numpy as np
import pytest

from fedsim import read_run, run, simulate
from fedsim.errors import AuditError
from fedsim.history import Recorder
from fedsim.results import recording, saver, status_of
from fedsim.simulation import Simulation
from tests.support.short_runs import TIMING


@pytest.fixture(autouse=True)
def _no_figures(monkeypatch):
    monkeypatch.setattr(recording, "draw", lambda *_, **__: None)


@pytest.fixture
def wrong_in_round_5(monkeypatch):
    """The second row of round 5 ends a second after its phases."""
    add = Recorder.add_participations

    def add_wrong(self, columns):
        if columns["round"] == 5:
            columns = {**columns, "end_s": columns["end_s"] + np.array([0.0, 1.0, 0.0])}
        add(self, columns)

    monkeypatch.setattr(Recorder, "add_participations", add_wrong)


MESSAGE = r"participations, row 13 \(round = 5, .*\): has seconds of phases that do not add up to its length \(start_s"


@pytest.mark.usefixtures("wrong_in_round_5")
def test_a_violation_ends_a_run_in_memory_and_is_named():
    with pytest.raises(AuditError, match=MESSAGE):
        simulate(TIMING)


@pytest.mark.usefixtures("wrong_in_round_5")
@pytest.mark.parametrize("every_round", [False, True], ids=["found at the end", "found at a write"])
def test_a_violation_ends_a_run_in_a_folder_as_failed_and_no_row_is_lost(every_round, tmp_path, monkeypatch):
    if every_round:
        monkeypatch.setattr(saver, "_SECONDS_BETWEEN_WRITES", 0.0)
        monkeypatch.setattr(saver, "_SHARE_OF_TIME_WRITING", 1e9)
    with pytest.raises(AuditError, match=MESSAGE):
        run(TIMING, tmp_path / "run")
    assert status_of(tmp_path / "run") == "failed"
    error = json.loads((tmp_path / "run" / "run.json").read_text())["error"]
    assert error["type"] == "AuditError"
    assert re.match(MESSAGE, error["message"])
    kept = read_run(tmp_path / "run")
    rounds = 5 if every_round else 8
    assert kept.rounds.num_rows == rounds
    assert kept.column("participations", "round").tolist() == np.repeat(np.arange(1, rounds + 1), 3).tolist()
    lasted_s = kept.column("participations", "end_s") - kept.column("participations", "start_s")
    apart_s = lasted_s - sum(kept.column("participations", f"{phase}_s") for phase in ("downlink", "compute", "uplink"))
    assert np.flatnonzero(apart_s > 0.5).tolist() == [13], "the wrong row is kept as it is"


@pytest.mark.parametrize("spills", [1, 7, 10**4])
def test_each_row_is_checked_once_however_rows_leave_memory(spills, monkeypatch):
    """Rounds of three rows each; they leave memory after every row, after seven or more, or at the end."""
    monkeypatch.setattr("fedsim.history.growing.ROWS_IN_A_BATCH", spills)
    simulation = Simulation(TIMING)
    seen = {}
    check = simulation.recorder.audit.check

    def noted(name, at, table):
        assert at == seen.get(name, 0)
        seen[name] = at + table.num_rows
        check(name, at, table)

    monkeypatch.setattr(simulation.recorder.audit, "check", noted)
    history = simulation.run()
    assert seen == {"participations": 24, "rounds": 8}
    assert history.participations.num_rows == 24
    assert 0 < simulation.recorder.audited_s < 5


def test_a_run_tells_what_the_audit_has_cost(tmp_path):
    lines = []
    run(TIMING, tmp_path / "run", tell=lines.append)
    assert re.fullmatch(r"tables: 32 rows checked in \d+\.\d{3} s, \d+\.\d\d% of the run", lines[-1])
    state = json.loads((tmp_path / "run" / "run.json").read_text())
    assert 0 <= state["audit_s"] <= state["wall_s"]
