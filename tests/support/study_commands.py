"""The commands of studies, in processes of their own."""

import os
import subprocess
import sys
from pathlib import Path

SCENARIOS = Path(__file__).parents[2] / "scenarios"


def command(script, folder, *options):
    """Run a script of a study of papers with its store and its output in a folder, and return what it prints."""
    return printed(script, folder, *options, "--store", folder / "store", "--out", folder / "out")


def printed(script, folder, *options):
    return subprocess.run(  # noqa: S603
        [sys.executable, SCENARIOS / script, *options],
        cwd=folder,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
