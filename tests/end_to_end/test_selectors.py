"""Methods that learn from losses and features get what they ask for in a run."""

import numpy as np
import pytest

from fedsim import Scenario, simulate
from fedsim.selectors import FedSuv, Oort, OortFedScale

SCENARIO = Scenario(
    name="suv",
    crowd={"clients": 24},
    learning={
        "data": "digits",
        "model": {"kind": "mlp", "hidden": [16]},
        "local": {"optimizer": "sgd", "learning_rate": 0.1, "epochs": 1, "batch_size": 10},
    },
    network={"kind": "cell"},
    devices={"compute": {"kind": "rate", "samples_per_s": 60.0, "spread_sigma": 0.8, "jitter_sigma": 0.2}},
    rounds={"count": 6, "policy": {"kind": "deadline", "deadline_s": 1.3}},
    selector={"kind": "uniform", "cohort": 4},
)


@pytest.mark.parametrize("method", [FedSuv, Oort, OortFedScale])
def test_what_a_method_needs_arrives(method):
    views, reported = [], []

    class Listening(method):
        def select(self, view, rng):
            views.append(view)
            return super().select(view, rng)

        def observe(self, reports):
            reported.append(reports)
            super().observe(reports)

    history = simulate(SCENARIO.replace({"selector": Listening(cohort=4)}))
    outcomes = history.column("participations", "outcome")
    assert {"delivered", "late"} <= set(outcomes.tolist())
    assert len(views) == len(reported) == 6
    for view, reports in zip(views, reported, strict=True):
        assert view.features.shape == (24, 4)
        assert np.all(np.isfinite(view.features))
        assert set(reports.measured) == set(method.needs)
        for column in reports.measured.values():
            np.testing.assert_array_equal(np.isfinite(column), reports.delivered)
