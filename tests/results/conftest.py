"""Fixtures of the tests of run folders."""

import pytest

from fedsim.results import recording


@pytest.fixture
def no_figures(monkeypatch):
    """Draw nothing at the end of a run, where the test is about something else."""
    monkeypatch.setattr(recording, "draw", lambda *_, **__: None)
