"""The live bar: what it shows on a terminal, and that it is silent elsewhere."""

import io
import re

import pytest
from rich.console import Console

from fedsim.learning import Evaluation, KnownEvaluation
from fedsim.results.progress import RoundBar
from fedsim.rounds import Progress


def shown(quiet=False, **console):
    file = io.StringIO()
    with RoundBar("quickstart", 4, Console(file=file, width=150, **console), quiet=quiet) as bar:
        bar.show(Progress(1, 4, 1.25, KnownEvaluation(Evaluation(accuracy=0.5, loss=1.0)), dict))
        bar.show(Progress(3, 4, 1234.5, None, dict))
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", file.getvalue())


def test_a_terminal_sees_round_simulated_time_accuracy_speed_and_time_left():
    last = shown(force_terminal=True).strip().split("\n")[-1].split("\r")[-1]
    assert "quickstart" in last
    assert "round 3/4" in last
    assert "1,234.5 s sim" in last
    assert "acc 50.0%" in last, "a round without evaluation keeps the last accuracy"
    assert "rounds/s" in last
    assert re.search(r"\d:\d\d", last)


@pytest.mark.parametrize("arguments", [{"force_terminal": False}, {"force_terminal": True, "quiet": True}])
def test_a_log_and_a_quiet_run_see_nothing(arguments):
    assert shown(**arguments).strip() == ""
