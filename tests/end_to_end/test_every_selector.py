"""Every selector of the catalogue selects in a run with learning, absences, deadlines and questions on the air."""

import functools

import numpy as np
import pytest

from fedsim import Scenario, simulate
from fedsim.selectors import SELECTORS
from tests.support.families import by_default
from tests.support.options import SELECTOR_RUN_OPTIONS

COMES_AND_GOES = Scenario(
    name="field",
    crowd={"clients": 16},
    learning={
        "data": {"kind": "digits", "train_limit": 600},
        "model": {"kind": "mlp", "hidden": [16]},
        "local": {"optimizer": "sgd", "learning_rate": 0.2, "epochs": 2, "batch_size": 10},
    },
    network={
        "kind": "latency",
        "downlink": {"kind": "shifted-exponential", "shift_s": 0.0, "scale_s": 0.1},
        "uplink": {"kind": "shifted-exponential", "shift_s": 0.0, "scale_s": 0.2},
    },
    devices={
        "compute": {"kind": "rate", "samples_per_s": 400.0},
        "availability": {"kind": "bernoulli", "probability": 0.8},
    },
    rounds={"count": 8, "policy": {"kind": "deadline", "deadline_s": 1.2}},
    selector="all",
    results={"audit": True},
)


# One that asks, one that ranks by losses, one of privacy; that each keeps its contract is tested beside the contract.
FEW = ["adapow-d", "oort", "pause"]


@functools.cache
def run(kind):
    options = {"kind": kind, **SELECTOR_RUN_OPTIONS.get(kind, {})}
    if "cohort" in SELECTORS.option_names(kind):
        options["cohort"] = 5
    return simulate(COMES_AND_GOES.replace({"selector": options}))


@pytest.mark.parametrize("kind", by_default(SELECTORS.builtin, FEW))
def test_it_selects_and_the_model_learns(kind):
    history = run(kind)
    assert history.rounds.num_rows == 8
    assert history.column("rounds", "selected").min() >= 1
    assert "delivered" in history.column("participations", "outcome").tolist()
    # By chance a digit is right one time in ten.
    assert history.column("evaluations", "accuracy")[-1] > 0.3


ASKING = [kind for kind in sorted(SELECTORS.builtin) if hasattr(SELECTORS.load(kind), "probe")]


@pytest.mark.parametrize("kind", by_default(ASKING, FEW))
def test_what_it_asks_costs_time_and_bits(kind):
    history = run(kind)
    asked = history.probes
    assert asked is not None
    selector = SELECTORS.make(
        {"kind": kind, **({"cohort": 5} if kind != "fedcs" else {}), **SELECTOR_RUN_OPTIONS.get(kind, {})}
    )
    answered = np.array(asked.column("outcome").to_pylist()) == "delivered"
    assert np.all(asked.column("uplink_bits").to_numpy()[answered] == selector.build().up_bits)
    first = asked.column("round").to_numpy() == 1
    starts_s = history.column("participations", "start_s")[history.column("participations", "round") == 1]
    assert starts_s.min() == asked.column("end_s").to_numpy()[first].max() > 0
