"""What each use of fedsim does without: the uses follow one another in one process, the lightest first."""

import json
import subprocess
import sys

import pytest

from tests.support.hand_made import by_hand

LEARNING = {**by_hand(), "learning": {"model": {"kind": "mlp", "hidden": [8]}}}
HELP = """
import contextlib, io, runpy
with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
    sys.argv[1:] = ["--help"]
    runpy.run_module("fedsim", run_name="__main__")
"""
TESTBED = f"testbed = fedsim.Testbed({by_hand()!r}); testbed.round(testbed.select()); testbed.finish()"
# What makes a start slow.
HEAVY = "matplotlib numpy pandas pyarrow pydantic scipy simpy sklearn torch torchvision"
FRAMEWORKS = "matplotlib sklearn torch torchvision"
USES = {
    "import": ("import fedsim", HEAVY),
    "version": ("from fedsim.cli.version import version_lines; list(version_lines())", HEAVY),
    "help": (HELP, HEAVY),
    "checks": ("import fedsim.testing", HEAVY),
    "a scenario that is read": (f"scenario = fedsim.Scenario(**{LEARNING!r})", FRAMEWORKS),
    "a run about timing": (f"fedsim.simulate(fedsim.Scenario(**{by_hand()!r}))", FRAMEWORKS),
    "a testbed about timing": (TESTBED, FRAMEWORKS),
}


@pytest.fixture(scope="module")
def loaded():
    """Return the modules that are loaded after each use."""
    steps = "".join(f"{code}\nloaded[{name!r}] = list(sys.modules)\n" for name, (code, _) in USES.items())
    script = f"import json, sys\nloaded = {{}}\n{steps}print(json.dumps(loaded))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)  # noqa: S603
    return json.loads(done.stdout)


@pytest.mark.parametrize("use", USES)
def test_a_use_loads_nothing_that_it_can_do_without(use, loaded):
    assert not set(loaded[use]) & set(USES[use][1].split())
    assert "fedsim" in loaded[use]
