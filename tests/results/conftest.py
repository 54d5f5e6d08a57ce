"""Fixtures of the tests of run folders."""

import pytest

from fedsim.results import recording, saver


@pytest.fixture
def no_figures(monkeypatch):
    """Draw nothing at the end of a run, where the test is about something else."""
    for name in ("draw", "draw_durations"):
        monkeypatch.setattr(recording, name, lambda *_, **__: None)


@pytest.fixture
def every_round(monkeypatch):
    """Put every round on disk at once."""
    monkeypatch.setattr(saver, "_SECONDS_BETWEEN_WRITES", 0.0)
    monkeypatch.setattr(saver, "_SHARE_OF_TIME_WRITING", 1e9)
