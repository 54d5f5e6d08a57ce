"""What a selector has measured beside an update takes the client's time and bits."""

import numpy as np
import pytest

from fedsim import Scenario, simulate
from tests.support.worlds import Everybody


class Asking(Everybody):
    oracle = uses_features = True
    newest = None

    def __init__(self, needs):
        super().__init__()
        self.needs = tuple(needs)
        Asking.newest = self


def scenario(needs, **rounds):
    """Three clients with 60 samples, of which each trains on 30 in a second, and updates of 1,000 bits."""
    return Scenario(
        name="measures",
        crowd={"clients": 3, "placement": {"kind": "disc", "radius_m": 60.0}},
        learning={"kind": "none", "model_bits": 1000, "samples_per_client": 60},
        network={"kind": "cell", "fading": {"kind": "none"}, "access": "none"},
        devices={"compute": {"kind": "rate", "samples_per_s": 30.0, "spread_sigma": 0.0, "jitter_sigma": 0.0}},
        rounds={"count": 2, **rounds},
        selector=Asking(needs),
    )


@pytest.mark.parametrize(
    ("needs", "compute_s", "uplink_bits"),
    [
        ((), 2.0, 1000),
        (("update",), 2.0, 1000),
        (("update_norm",), 2.0, 1000),
        (("loss",), 2.0, 1032),
        (("loss", "loss_rms"), 2.0, 1064),
        # Two looks at 60 samples, each a third of the work of training on them.
        (("accuracy_gain",), 2.0 + 2 * 60 / 3 / 30, 1032),
        (("loss_rms", "accuracy_gain"), 2.0 + 2 * 60 / 3 / 30, 1064),
    ],
)
def test_measurements_take_time_and_bits(needs, compute_s, uplink_bits):
    history = simulate(scenario(needs))
    assert history.column("participations", "compute_s") == pytest.approx(np.full(6, compute_s))
    assert history.column("participations", "uplink_bits").tolist() == [uplink_bits] * 6
    assert history.column("participations", "downlink_bits").tolist() == [1000] * 6


def test_expected_durations_include_measurements():
    """Declared features, and an oracle's mean and coming durations, include two forward passes and the number."""
    views = {}
    for needs in ((), ("accuracy_gain",)):
        history = simulate(scenario(needs))
        views[needs] = Asking.newest.views[0]
        took_s = history.column("participations", "end_s")[:3] - history.column("participations", "start_s")[:3]
        np.testing.assert_allclose(views[needs].coming_duration_s(), took_s)
    bare, measured = (views[needs].features for needs in views)
    np.testing.assert_allclose(measured[:, 0], bare[:, 0])
    np.testing.assert_allclose(measured[:, 1], bare[:, 1] + 4 / 3)
    np.testing.assert_allclose(measured[:, 2], bare[:, 2] * 1.032, atol=1e-8)  # 60 m of flight take no longer
    for view in views.values():
        np.testing.assert_allclose(view.expected_duration_s, view.features[:, :3].sum(axis=1))
