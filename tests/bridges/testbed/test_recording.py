"""The run folder of a testbed: as that of any run, and it says that the cohorts came from outside."""

import json

import pytest

from fedsim import Scenario, Testbed, read_run, run
from fedsim.errors import RunError
from fedsim.results import report, status_of
from tests.support.hand_made import by_hand


def play(folder, rounds=3, **options):
    with Testbed(by_hand(), folder, **options) as testbed:
        for number in range(rounds):
            testbed.round([0, number]) if number else testbed.round([0])
            testbed.report(accuracy=0.3 * (number + 1))
    return testbed.finish()


@pytest.mark.usefixtures("figures")
def test_the_folder_is_that_of_a_run(tmp_path):
    history = play(tmp_path / "run")
    kept = read_run(tmp_path / "run").tables()
    assert all(table.equals(kept[name]) for name, table in history.tables().items())
    assert status_of(tmp_path / "run") == "finished"
    assert (tmp_path / "run" / "accuracy.png").exists()
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert summary["final_accuracy"] == pytest.approx(0.9)
    assert any("came from outside" in note for note in summary["notes"])
    assert json.loads((tmp_path / "run" / "run.json").read_text())["cohorts"] == "outside"
    assert report(read_run(tmp_path / "run"))


@pytest.mark.usefixtures("figures")
@pytest.mark.parametrize(
    ("told", "drawn"),
    [({"metrics": {"f1": 0.5}}, set()), ({"accuracy": 0.5}, {"accuracy.png", "accuracy_by_round.png"})],
)
def test_what_is_not_reported_is_not_drawn(tmp_path, told, drawn):
    """The last model has no accuracy, and none has a loss."""
    with Testbed(by_hand(), tmp_path / "run") as testbed:
        testbed.round([0])
        testbed.report(**told)
        testbed.round([0])
        testbed.report(metrics={"top-2": 0.7})
    assert {path.name for path in (tmp_path / "run").glob("*.png")} == {"round_durations.png"} | drawn
    assert "top-2" in testbed.finish().metrics


def test_it_is_not_replayed(tmp_path):
    """Neither a scenario goes on with it, nor another testbed, nor that with a scenario's run; replaced it may be."""
    run(Scenario(**by_hand()), tmp_path / "own")
    with pytest.raises(RunError, match="whose cohorts were its selector's"):
        Testbed(by_hand(), tmp_path / "own")
    play(tmp_path / "run", rounds=1)
    with pytest.raises(RunError, match="holds a run of this scenario whose cohorts came from outside"):
        run(Scenario(**by_hand()), tmp_path / "run")
    with pytest.raises(RunError, match=r"whose cohorts came from outside, .* it cannot be replayed"):
        Testbed(by_hand(), tmp_path / "run")
    assert play(tmp_path / "run", rounds=2, replace=True).rounds.num_rows == 2


def test_an_error_of_the_callers_code_keeps_the_rounds(tmp_path):
    def fail():
        with Testbed(by_hand(), tmp_path / "run") as testbed:
            testbed.round([0])
            testbed.round([1])
            raise KeyError("own")

    with pytest.raises(KeyError):
        fail()
    state = json.loads((tmp_path / "run" / "run.json").read_text())
    assert (state["status"], state["error"]["type"], state["rounds"]) == ("failed", "KeyError", 1)
    assert read_run(tmp_path / "run").rounds.num_rows == 1
