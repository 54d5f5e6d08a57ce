"""The study of Flower's strategies runs, at tiny size."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("flwr", reason="the extra 'flower' is not installed")

SCRIPT = Path(__file__).parents[2] / "scenarios" / "flower" / "strategies.py"


@pytest.mark.slow
def test_strategies(tmp_path):
    printed = subprocess.run(  # noqa: S603
        [sys.executable, SCRIPT, "--rounds", "2", "--out", tmp_path],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert [line.split()[0] for line in printed.splitlines()[:4]] == ["strategy", "FedAvg", "FedAdam", "Krum"]
    assert (tmp_path / "strategies.png").stat().st_size > 10_000
