"""A disk that is full for a moment does not end a run, and one that stays full does."""

from pathlib import Path

import pytest

from fedsim import read_run, run, simulate
from fedsim.errors import WriteError
from fedsim.history import Recorder, growing, spool
from fedsim.results import saver, status_of
from tests.support.run_folders import full
from tests.support.short_runs import TIMING

pytestmark = pytest.mark.usefixtures("every_round")


@pytest.mark.parametrize(("where", "name"), [(spool.Spool, "_write"), (Path, "write_text"), (Path, "write_bytes")])
def test_a_disk_that_is_full_for_a_moment_does_not_end_the_run(where, name, tmp_path):
    lines, seen = [], []
    of = TIMING.replace({"learning": {"model": {"kind": "mlp", "hidden": [4]}}}) if name == "write_bytes" else TIMING
    with pytest.MonkeyPatch.context() as patch:

        def fill(progress):
            if progress.round == 3:
                patch.setattr(where, name, full)
            if progress.round == 6:
                seen.append(read_run(tmp_path).rounds.num_rows)
                patch.undo()

        run(of, tmp_path, on_round=fill, tell=lines.append, save_models=1, store=False)
    assert status_of(tmp_path) == "finished"
    assert [line for line in lines if "No space left" in line] == lines[:1], "said once"
    assert lines[0].endswith("the run goes on, and this is tried again")
    assert read_run(tmp_path).participations.equals(simulate(of, store=False).participations)
    if name == "write_bytes":
        assert len(list((tmp_path / "models").iterdir())) == 8
    else:
        assert seen == [3], "what was written before is readable"


def test_a_disk_that_stays_full_ends_the_run(tmp_path, monkeypatch):
    monkeypatch.setattr(saver, "_PATIENCE_S", 0.0)
    with pytest.MonkeyPatch.context() as patch:

        def fill(progress):
            if progress.round == 3:
                patch.setattr(spool.Spool, "_write", full)
            assert progress.round < 5

        with pytest.raises(WriteError, match="No space left"):
            run(TIMING, tmp_path, on_round=fill)
    assert (status_of(tmp_path), read_run(tmp_path).rounds.num_rows) == ("failed", 3)


def test_rows_stay_in_memory_while_the_disk_is_full(monkeypatch):
    monkeypatch.setattr(growing, "ROWS_IN_A_BATCH", 3)
    monkeypatch.setattr(growing, "_MOST_ROWS_IN_MEMORY", 20)
    kept = Recorder("full")

    def add(number):
        kept.add_row("evaluations", round=number, time_s=1.0 * number, model_version=number, accuracy=0.5, loss=1.0)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(spool.Spool, "_write", full)
        for number in range(10):
            add(number)
    for number in range(10, 15):
        add(number)
    assert kept.history().column("evaluations", "round").tolist() == list(range(15))
    monkeypatch.setattr(spool.Spool, "_write", full)

    def add_many():
        for number in range(15, 60):
            add(number)

    with pytest.raises(WriteError):
        add_many()
    assert 15 + 20 <= kept.counts()["evaluations"] <= 15 + 20 + 3
