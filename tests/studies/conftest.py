"""Fixtures of the tests of studies."""

import pytest


@pytest.fixture
def in_turn(monkeypatch):
    """Make the runs of studies in this process, one after the other: what is tested is not where they are made."""
    from fedsim.studies.running import engine, records

    def packs_in_turn(packs, blobs, options, jobs):
        for pack in packs:
            yield records.run_pack(blobs, pack, options)

    monkeypatch.setattr(records, "_READ", {})
    monkeypatch.setattr(engine, "in_processes", packs_in_turn)
