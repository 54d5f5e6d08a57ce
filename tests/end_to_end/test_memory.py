"""What a run keeps in memory for each participation, and that it leaves no file or process open."""

import gc
import multiprocessing
import os
import sys
import tracemalloc
from pathlib import Path

import pytest

from fedsim.simulation import Simulation
from tests.support.short_runs import timed

MOST_BYTES = 300
"""For each participation; its rows in the tables have about 170 bytes."""


def scenario(policy, rounds):
    return timed(
        clients=40,
        cohort=5,
        devices={"compute": "zero", "dropout": {"kind": "hazard", "rate_per_s": 0.05}},
        rounds={"count": rounds, "policy": {"concurrency": 10, "give_up_s": 1e4, **policy}},
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("policy", "rounds"), [({"kind": "fedbuff", "buffer": 5}, (20, 60)), ({"kind": "fedasync"}, (50, 250))]
)
def test_an_asynchronous_audited_run_keeps_little_of_each_participation(policy, rounds):
    """More participations after the first measurement than before it, and the rows of all on disk."""
    kept = {}

    def measure(progress):
        if progress.round in rounds:
            simulation.recorder.flush()
            gc.collect()
            kept[simulation.recorder.counts()["participations"]] = tracemalloc.get_traced_memory()[0]

    simulation = Simulation(scenario(policy, rounds[1]), on_round=measure)
    tracemalloc.start()
    try:
        simulation.run()
    finally:
        tracemalloc.stop()
    (few, before), (many, after) = kept.items()
    assert many - few >= 200
    assert (after - before) / (many - few) <= MOST_BYTES


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="counts open files as Linux tells them")
def test_a_run_leaves_no_file_and_no_process_open():
    def left():
        gc.collect()
        return len(list(Path("/proc/self/fd").iterdir())), len(multiprocessing.active_children())

    def play():
        simulation = Simulation(scenario({"kind": "fedbuff", "buffer": 5}, 20))
        history = simulation.run()
        simulation.recorder.flush()
        return history.participations.num_rows, os.getpid()

    play()
    before = left()
    assert play()[0] >= 100
    assert left() == before
