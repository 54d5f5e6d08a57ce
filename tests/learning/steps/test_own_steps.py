"""Steps of the user's own, which any part of a scenario may bring."""

import numpy as np
import pytest

from fedsim import Scenario, simulate
from fedsim.errors import PartError
from fedsim.learning import MemoryStore
from fedsim.learning.aggregation.contracts import Mean
from fedsim.learning.steps.contracts import UpdateStep

QUICK = Scenario.load("scenarios/quickstart.toml").replace({"rounds.count": 2, "rounds.policy": "wait-for-all"})


class Times(UpdateStep):
    def __init__(self, factor):
        self.factor = factor

    def bits(self, bits, tensors):
        return bits / 2

    def client(self, message):
        message.numbers = (message.numbers * np.float32(self.factor)).astype(np.float32)


class Short(UpdateStep):
    def client(self, message):
        message.numbers = message.numbers[1:]


class Scaled(Mean):
    """The mean of updates, each of which its client has multiplied."""

    factor: float = 1.0

    def update_steps(self, run):
        return [Times(self.factor)]


class Cut(Mean):
    def update_steps(self, run):
        return [Short()]


class Alike(Mean):
    def update_steps(self, run):
        return "none"


def model(part, store):
    history = simulate(QUICK.replace({"learning.aggregation": part, "rounds.count": 1}), store=store)
    return np.concatenate([one.detach().numpy().ravel() for one in history.model().parameters()])


def test_a_step_changes_numbers_and_bits_and_a_store_knows_it():
    """Twice the updates is twice the way from the start, also with a store that has met half of it."""
    store = MemoryStore()
    start, once, twice = (model(Scaled(factor=factor), store) for factor in (0.0, 1.0, 2.0))
    np.testing.assert_allclose(twice - start, 2 * (once - start), rtol=1e-3, atol=1e-6)
    assert np.abs(once - start).max() > 1e-3
    assert np.array_equal(model(Mean(), store), once)
    bits = [
        simulate(QUICK.replace({"learning.aggregation": part})).column("participations", "uplink_bits").max()
        for part in (Mean(), Scaled())
    ]
    assert bits[0] == 2 * bits[1]


@pytest.mark.parametrize(
    ("algorithm", "numbers"),
    [
        ({"kind": "fedper", "layers": 1}, 64 * 8 + 8),
        ({"kind": "heterofl", "widths": [1.0, 0.5], "client_widths": [0.5] * 10}, 64 * 4 + 4 + 4 * 10 + 10),
    ],
)
def test_a_step_prices_the_part_of_the_model_that_is_sent(algorithm, numbers):
    parts = {"learning.model": {"kind": "mlp", "hidden": [8]}, "learning.algorithm": algorithm, "crowd.clients": 10}
    parts |= {"learning.aggregation": Scaled(), "learning.local.keep_optimizer_state": False}
    row = simulate(QUICK.replace(parts)).participations.to_pylist()[0]
    assert (row["downlink_bits"], row["uplink_bits"]) == (32 * numbers, 16 * numbers)


@pytest.mark.parametrize(
    ("part", "said"),
    [
        (Cut(), r"update step .*Short\.client returned a message with .*; allowed: an array of float32 of shape"),
        (Alike(), r"any part with steps .*Alike\.update_steps returned 'none'; allowed: a list or a tuple"),
    ],
)
def test_a_step_that_lies_is_refused_by_name(part, said):
    with pytest.raises(PartError) as caught:
        simulate(QUICK.replace({"learning.aggregation": part}))
    assert caught.match(said.replace("; ", "(.|\n)*"))
