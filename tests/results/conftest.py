"""Fixtures of the tests of run folders."""

import pytest

from fedsim.results import saver


@pytest.fixture
def every_round(monkeypatch):
    """Put every round on disk at once."""
    monkeypatch.setattr(saver, "_SECONDS_BETWEEN_WRITES", 0.0)
    monkeypatch.setattr(saver, "_SHARE_OF_TIME_WRITING", 1e9)
