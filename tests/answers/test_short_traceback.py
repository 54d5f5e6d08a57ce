"""A script that ends by an error of a part of its own prints a few lines; the whole traceback is to be had."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fedsim import Scenario, Testbed, run, simulate
from fedsim.errors import FedsimError, PartError
from tests.support.short_runs import TIMING

SCRIPT = """
import sys

from torch import nn

from fedsim import Scenario, simulate


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.seen = nn.Linear(64, 10), False

    def forward(self, x):
        if self.training:
            raise KeyError("no such word")
        return self.layer(x.flatten(1))


scenario = Scenario(
    name="short",
    crowd={"clients": 4},
    learning={"data": {"kind": "digits", "train_limit": 60}, "model": Net()},
    network="pause-two-speed",
    rounds={"count": 2},
    selector={"kind": "uniform", "cohort": 2},
)
simulate(scenario, store=False, executor=sys.argv[1])
"""


class Failing:
    def select(self, view: Any, rng: Any) -> Any:
        raise KeyError("no such client")

    def observe(self, reports: Any) -> None:
        pass


def scenario() -> Scenario:
    return TIMING.replace({"selector": Failing()})


def lines_of(folder: Path, executor: str, **variables: str) -> list[str]:
    """Return what the script prints on standard error."""
    (folder / "script.py").write_text(SCRIPT)
    environment = {key: value for key, value in os.environ.items() if key != "FEDSIM_TRACEBACK"} | variables
    environment["PYTHONPATH"] = os.pathsep.join(sys.path)
    command = [sys.executable, "script.py", executor]
    ended = subprocess.run(  # noqa: S603
        command, check=False, cwd=folder, env=environment, capture_output=True, text=True, timeout=120
    )
    assert ended.returncode == 1
    return ended.stderr.splitlines()


@pytest.mark.slow
@pytest.mark.parametrize("executor", ["sequential", "processes"])
def test_a_script_that_fails_prints_a_few_lines(executor: str, tmp_path: Path) -> None:
    lines = lines_of(tmp_path, executor)
    assert len(lines) <= 12, "\n".join(lines)
    what, where, client, round_, second = lines[-5:]
    assert "Net.forward failed with KeyError: 'no such word'" in what
    assert where.startswith("  where: ")
    assert client.startswith("  client: ")
    assert round_ == "  round: 1"
    assert second.startswith("  simulated second: ")


@pytest.mark.slow
def test_the_variable_prints_the_whole_traceback(tmp_path: Path) -> None:
    lines = lines_of(tmp_path, "sequential", FEDSIM_TRACEBACK="1")
    assert len(lines) > 40
    assert any(line.startswith("KeyError: ") for line in lines)


def test_what_the_part_raised_and_the_whole_traceback_are_kept(tmp_path: Path) -> None:
    def stepped() -> None:
        with Testbed(scenario()) as testbed:
            testbed.select()

    for call in (lambda: simulate(scenario()), lambda: run(scenario(), tmp_path / "run"), stepped):
        with pytest.raises(PartError) as failed:
            call()
        error = failed.value
        assert error.__cause__ is None
        assert error.__suppress_context__
        assert isinstance(error.failure, KeyError)
        assert "in select" in error.origin
        # At most the calls of this test, and two of fedsim's.
        assert sum("fedsim" in str(entry.path) and "tests" not in str(entry.path) for entry in failed.traceback) <= 3


def test_a_refusal_is_short_too() -> None:
    whole = {"data": {"kind": "digits", "train_limit": 60}, "model": {"hidden": [3]}}
    with pytest.raises(FedsimError, match="sundial") as failed:
        simulate(scenario().replace({"learning": whole}), store=False, executor="sundial")
    assert len(failed.traceback) <= 3
