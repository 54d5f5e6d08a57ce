"""Whatever reads a run that is not whole says so."""

import pytest
from typer.testing import CliRunner

from fedsim import read_run, run, simulate
from fedsim.cli import app
from fedsim.results import report
from fedsim.results.state import shortfall
from tests.support.run_folders import BrokenError, stopped
from tests.support.short_runs import TIMING


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (KeyboardInterrupt(), "interrupted after 3 of at most 8 rounds (KeyboardInterrupt: Ctrl-C)"),
        (KeyboardInterrupt("SIGTERM"), "interrupted after 3 of at most 8 rounds (KeyboardInterrupt: SIGTERM)"),
        (BrokenError("no disk"), "failed after 3 of at most 8 rounds (BrokenError: no disk)"),
        (BrokenError(), "failed after 3 of at most 8 rounds (BrokenError)"),
        (SystemExit(3), "failed after 3 of at most 8 rounds (SystemExit: 3)"),
    ],
)
def test_report_and_history_say_what_is_missing_and_why(error, words, tmp_path, monkeypatch):
    stopped(TIMING, tmp_path / "run", 3, error)
    assert shortfall(tmp_path / "run") == read_run(tmp_path / "run").unfinished == words
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    told = CliRunner().invoke(app, ["report", "run"])
    assert told.exit_code == 0
    assert told.stdout.startswith("This run is not whole, ")
    assert words in told.stdout


def test_a_figure_of_a_run_that_is_not_whole_is_drawn_and_says_so(tmp_path, monkeypatch):
    stopped(TIMING, tmp_path / "run", 3, BrokenError("no disk"))
    monkeypatch.chdir(tmp_path)
    told = CliRunner().invoke(app, ["plot", "run", "--y", "duration", "--out", "figure.svg"])
    assert "run: this run is not whole: failed after 3 of at most 8 rounds (BrokenError: no disk)" in told.stderr
    assert "figure.svg" in told.stdout


def test_a_whole_run_says_nothing(tmp_path):
    run(TIMING, tmp_path)
    for history in (simulate(TIMING), read_run(tmp_path)):
        assert history.unfinished is None
        assert "not whole" not in report(history)[0].title


def test_what_a_scenario_asks_of_its_results_is_known_of_any_run(tmp_path):
    asked = TIMING.replace({"results.target_accuracy": 0.6, "results.smoothing": 4, "rounds.until_s": 3.0})
    stopped(asked, tmp_path / "part", 2, BrokenError())
    run(asked, tmp_path / "whole")
    for history in (read_run(tmp_path / "part"), read_run(tmp_path / "whole"), simulate(asked)):
        assert (history.target_accuracy, history.smoothing, history.until_s) == (0.6, 4, 3.0)
