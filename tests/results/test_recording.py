"""A run whose folder can no longer be written ends with an error, and what it has written stays."""

import shutil
from dataclasses import replace

import pytest

from fedsim import read_run, run, simulate
from fedsim.errors import RunError
from fedsim.history import spool
from fedsim.results import state, status_of
from tests.support.run_folders import full
from tests.support.short_runs import TIMING


@pytest.mark.usefixtures("every_round")
@pytest.mark.parametrize("state_too", [False, True])
def test_a_full_disk_ends_the_run_and_it_goes_on_when_there_is_room(state_too, tmp_path):
    with pytest.MonkeyPatch.context() as patch:

        def fill(progress):
            if progress.round == 5:
                patch.setattr(spool.Spool, "_write", full)
                if state_too:
                    patch.setattr(state.Path, "write_text", full)

        with pytest.raises(RunError, match=r"\.arrows: cannot be written: No space left on device"):
            run(TIMING, tmp_path / "run", on_round=fill)
        assert status_of(tmp_path / "run") == ("killed" if state_too else "failed")
    assert read_run(tmp_path / "run").rounds.num_rows == 5
    run(TIMING, tmp_path / "run")
    assert read_run(tmp_path / "run").participations.equals(simulate(TIMING).participations)


@pytest.mark.usefixtures("every_round")
def test_a_folder_that_vanishes_ends_the_run(tmp_path):
    def remove(progress):
        if progress.round == 3:
            shutil.rmtree(tmp_path / "run")

    with pytest.raises(RunError, match="run: the folder is not there, or no longer"):
        run(TIMING, tmp_path / "run", on_round=remove)
    assert not (tmp_path / "run").exists()


def test_a_folder_that_cannot_be_made_is_refused_in_words(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(RunError, match="cannot be made: Not a directory"):
        run(TIMING, tmp_path / "file" / "run")


def test_a_history_knows_its_scenario(tmp_path):
    scenario = TIMING.replace({"seed": 3})
    made = run(scenario, tmp_path / "run", store=False)
    for history in (made, read_run(tmp_path / "run")):
        assert (history.scenario, history.digest, history.seed) == (scenario, scenario.digest(), 3)
    with pytest.raises(RunError, match="no scenario is known"):
        _ = replace(made, find_scenario=None).scenario
