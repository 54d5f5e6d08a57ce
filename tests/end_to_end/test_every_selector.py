"""Every selector of the catalogue selects in a run with learning, absences, deadlines and questions on the air."""

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


def options_of(kind):
    cohort = {"cohort": 5} if "cohort" in SELECTORS.option_names(kind) else {}
    return {"kind": kind, **cohort, **SELECTOR_RUN_OPTIONS.get(kind, {})}


@pytest.mark.parametrize("kind", by_default(SELECTORS.builtin, FEW))
def test_it_selects_what_it_asks_costs_time_and_bits_and_the_model_learns(kind):
    history = simulate(COMES_AND_GOES.replace({"selector": options_of(kind)}))
    assert history.rounds.num_rows == 8
    assert history.column("rounds", "selected").min() >= 1
    assert "delivered" in history.column("participations", "outcome").tolist()
    # By chance a digit is right one time in ten.
    assert history.column("evaluations", "accuracy")[-1] > 0.3
    if not hasattr(SELECTORS.load(kind), "probe"):
        return
    answered = history.column("probes", "outcome") == "delivered"
    up_bits = SELECTORS.make(options_of(kind)).build().up_bits
    assert np.all(history.column("probes", "uplink_bits")[answered] == up_bits)
    first = history.column("probes", "round") == 1
    starts_s = history.column("participations", "start_s")[history.column("participations", "round") == 1]
    assert starts_s.min() == history.column("probes", "end_s")[first].max() > 0
