"""What selectors are shown and told in whole runs: every column, and whether it can be written to, as yesterday."""

import dataclasses
from typing import ClassVar

import numpy as np
import pytest

from fedsim import Scenario, simulate
from fedsim.selectors import Cohort, Probe
from tests.golden import freeze
from tests.support.frozen_answers import check_frozen

RULES, LATENCY, EDGES = freeze.SAFE_POLICIES, freeze.LATENCY, freeze.MERGINGS
STALE = {"late": {"kind": "stale", "max_staleness": 2}}
RUNS = {
    "deadline, privacy": {"privacy": freeze.PRIVACIES["coordinate"]},
    "cell, some are away": {
        "network": freeze.cell("dedicated", "dedicated"),
        "devices": {"availability": freeze.AVAILABILITIES["markov"], "dropout": freeze.DROPOUTS["hazard"]},
    },
    "stale updates": {"network": LATENCY, "rounds": {"policy": RULES["quorum"], **STALE}},
    "batteries, draws": {
        "network": LATENCY,
        "devices": {"availability": freeze.AVAILABILITIES["bernoulli"], "energy": freeze.ENERGIES["battery"]},
    },
    "faults": {"network": LATENCY, "rounds": {"faults": freeze.FAULTS["everything"], "late": "drop"}},
    "fedbuff": {"network": LATENCY, "rounds": {"policy": RULES["fedbuff"], "count": 6}},
    "fedasync, shared": {"network": freeze.cell("equal", "equal"), "rounds": {"policy": RULES["fedasync"], "count": 6}},
    "safa": {"network": LATENCY, "rounds": {"policy": RULES["safa"]}},
    "edges": {
        "network": LATENCY,
        "rounds": {"edges": {"grouping": {"kind": "order", "count": 3}, "backhaul": freeze.WIRE, "rounds": 2}},
    },
    "edges over a graph": {
        "network": freeze.AT_SERVERS,
        "devices": {"availability": freeze.AVAILABILITIES["markov-rare"]},
        "rounds": {"edges": {"grouping": "site", "backhaul": "network", "merging": EDGES["skip"]}},
    },
    "server restarts": {
        "network": LATENCY,
        "rounds": {"faults": freeze.FAULTS["restart-at"], "policy": RULES["fedbuff"], "count": 5},
    },
    "asynchronous cloud": {
        "network": LATENCY,
        "rounds": {
            "policy": RULES["fedbuff"],
            "edges": {
                "grouping": {"kind": "latency", "count": 2},
                "backhaul": "none",
                "merging": EDGES["asynchronous-hinge"],
            },
        },
    },
}


class Watcher:
    """Chooses some of the candidates at random and writes down what it is shown and told."""

    cohort: ClassVar[int] = 3
    uses_features: ClassVar[bool] = True

    seen: ClassVar[list[object]] = []

    def select(self, view, rng):
        columns = {field.name: getattr(view, field.name) for field in dataclasses.fields(view)}
        columns |= {name: getattr(view, name) for name in columns.pop("at_request")}
        free = [name for name, column in columns.items() if isinstance(column, np.ndarray) and column.flags.writeable]
        shown = {name: column for name, column in columns.items() if column is not None and not callable(column)}
        places = [view.count, view.pick(np.arange(view.count)[::-2]), view.below(3), view.includes(np.arange(5))]
        self.seen.append([shown, free, places])
        size = min(view.count, 3 if view.wanted is None else view.wanted + 1)
        return Cohort(np.sort(rng.choice(view.client, size, replace=False)))

    def observe(self, reports):
        self.seen.append(reports)


class Foreseeing(Watcher):
    """Sees the future."""

    oracle: ClassVar[bool] = True

    def select(self, view, rng):
        soon_s = view.coming_duration_s()
        self.seen.append([soon_s, view.stays(np.zeros(soon_s.size), soon_s), view.stays(soon_s, soon_s + 2.0)])
        return super().select(view, rng)


class Asking(Watcher):
    """Asks all candidates but one for their resources."""

    def probe(self, view, rng):
        client = np.sort(rng.choice(view.client, max(1, view.count - 1), replace=False))
        return Probe(client=client, asks="resources", down_bits=1e3, up_bits=2e3, wait_s=0.6)


@pytest.mark.parametrize("kind", [Watcher, Foreseeing, Asking])
@pytest.mark.parametrize("case", sorted(RUNS))
def test_a_selector_sees_what_it_saw(case, kind):
    Watcher.seen.clear()
    _, tables = freeze.described("views", {"rounds": {"count": 3}}, RUNS[case])
    simulate(Scenario(**{**tables, "selector": kind()}))
    assert Watcher.seen
    check_frozen("views", f"{case}, {kind.__name__}", Watcher.seen)
