"""The checks load one by one, and importing them loads no part of the simulator."""

import subprocess
import sys
from pathlib import Path

from fedsim import testing


def test_every_check_has_a_name_and_loads():
    found = {
        line.split("(")[0].removeprefix("def ")
        for path in Path(testing.__file__).parent.glob("*.py")
        for line in path.read_text().splitlines()
        if line.startswith("def check_")
    }
    assert found == set(testing.__all__) == set(dir(testing))
    assert all(callable(getattr(testing, name)) for name in found)


def test_importing_the_checks_loads_neither_numpy_nor_torch():
    code = "import sys, fedsim.testing; print({'numpy', 'simpy', 'torch'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)  # noqa: S603
    assert done.stdout == "set()\n"
