"""Fixtures of the tests of studies."""

import pytest

from tests.support.one_command import packs_in_turn


@pytest.fixture
def in_turn(monkeypatch):
    """Make the runs of studies in this process, one after the other: what is tested is not where they are made."""
    from fedsim.studies.running import engine, records

    monkeypatch.setattr(records, "_READ", {})
    monkeypatch.setattr(engine, "in_processes", packs_in_turn)
