"""Memory does not grow with the rounds, but for the rows of the tables."""

import gc
import tracemalloc

import pytest

from fedsim import Scenario
from fedsim.history import Recorder
from fedsim.rounds import StoppingCriteria
from fedsim.simulation import build_context, build_server

LAW = {"kind": "log-normal", "median_s": 0.3, "sigma": 0.4}
POLICIES = {
    "wait-for-all": ("wait-for-all", 25),
    "stale": ({"kind": "adaptive-deadline", "initial_s": 0.8}, 25),
    "fedbuff": ({"kind": "fedbuff", "buffer": 10, "concurrency": 20}, 30),
    "fedasync": ({"kind": "fedasync", "concurrency": 20}, 500),
}

PRESENCE = ("always", {"kind": "markov", "mean_on_s": 50.0, "mean_off_s": 50.0})


class NoRows(Recorder):
    """Records nothing."""

    def add_participations(self, **columns):
        pass

    def add_round(self, **values):
        pass


@pytest.mark.slow
@pytest.mark.parametrize("policy", POLICIES)
def test_nothing_but_rows_grows_with_rounds(policy):
    """After a warm-up, twice as many rounds hold the same memory: below 4 bytes for each further participation.

    The 16 KiB beside are room for lists and dictionaries, which grow by leaps.
    """
    settings, rounds = POLICIES[policy]
    asynchronous = policy.startswith("fed")
    if asynchronous:
        settings = {**settings, "give_up_s": 5.0}
    scenario = Scenario(
        name="memory",
        crowd={"clients": 400},
        learning={"kind": "none", "model_bits": 1e6, "samples_per_client": 100},
        privacy={"mechanism": {"kind": "laplace-l1", "clip": 1.0}, "budget": {"kind": "geometric", "epsilon": 9.0}},
        network={"kind": "latency", "downlink": LAW, "uplink": LAW},
        devices={"availability": PRESENCE[asynchronous]},
        rounds={"count": 3 * rounds, "policy": settings},
        selector={"kind": "pause" if not asynchronous else "uniform", "cohort": 40},
    )
    held = {}

    def on_round(progress):
        if progress.round % rounds == 0:
            gc.collect()
            held[progress.round] = tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    try:
        server = build_server(
            build_context(scenario), StoppingCriteria(count=3 * rounds), NoRows("memory"), on_round=on_round
        )
        server.run()
    finally:
        tracemalloc.stop()
    participations = {"fedbuff": 10, "fedasync": 1}.get(policy, 40) * rounds
    assert held[3 * rounds] - held[2 * rounds] < 4 * participations + 2**14
