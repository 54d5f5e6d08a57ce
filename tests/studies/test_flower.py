"""The study of Flower's strategies runs, at tiny size."""

import pytest

from tests.support.study_commands import printed

pytest.importorskip("flwr", reason="the extra 'flower' is not installed")


@pytest.mark.slow
def test_strategies(tmp_path):
    told = printed("flower/strategies.py", tmp_path, "--rounds", "2", "--out", tmp_path)
    assert [line.split()[0] for line in told.splitlines()[:4]] == ["strategy", "FedAvg", "FedAdam", "Krum"]
    assert (tmp_path / "strategies.png").stat().st_size > 10_000
