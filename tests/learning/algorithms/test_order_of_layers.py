"""The last layer is the one that is executed last, wherever a module of the user's own registers it."""

import functools

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.utils import parametrizations

from fedsim import simulate
from fedsim.errors import ScenarioError
from fedsim.learning import MODELS, FedPer
from fedsim.learning.models.flat_module import build_flat
from tests.support.short_runs import of_learning
from tests.support.tiny_targets import TinyTargets


class Headed(nn.Module):
    """A body and a head, the one or the other registered first."""

    def __init__(self, *, head_first: bool, normed: bool = False) -> None:
        super().__init__()
        with torch.random.fork_rng():
            torch.manual_seed(0)
            body, head = nn.Linear(5, 6), nn.Linear(6, 3)
        if normed:
            head = parametrizations.weight_norm(head)
        for name, layer in (("head", head), ("body", body)) if head_first else (("body", body), ("head", head)):
            self.add_module(name, layer)

    def forward(self, samples):
        body, head = self.get_submodule("body"), self.get_submodule("head")
        return head(torch.tanh(body(samples)))


class Bare(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(5, 3))

    def forward(self, samples):
        return samples @ self.weight


def run(model, algorithm, rounds=3):
    learning = {
        "data": TinyTargets(of="labels"),
        "model": model,
        "algorithm": algorithm,
        "local": {"batch_size": 100, "steps": 3, "learning_rate": 0.3},
    }
    scenario = of_learning(learning, clients=3, rounds=rounds, cohort=3)
    return simulate(scenario, store=False, executor="sequential")


@functools.cache
def headed(algorithm, *, normed, first):
    options = {"mu": 5.0} if algorithm == "moon" else {}
    found = run(Headed(head_first=first, normed=normed), {"kind": algorithm, **options})
    return found.evaluations.column("loss").to_numpy(), found.participations.column("uplink_bits")


@pytest.mark.parametrize(("algorithm", "normed"), [("moon", True), ("fedper", False), ("plain", False)])
def test_the_order_of_registration_changes_nothing(algorithm, normed):
    (one, bits), (other, as_many) = (headed(algorithm, normed=normed, first=first) for first in (False, True))
    np.testing.assert_allclose(one, other, rtol=1e-6)
    assert bits.equals(as_many)
    plain, _ = headed("plain", normed=normed, first=False)
    assert np.allclose(plain, one) is (algorithm == "plain")


def test_the_head_stays_with_the_client():
    layout = build_flat(MODELS.make(Headed(head_first=True)), (5,), 3, 0).layout
    shared = layout.named(FedPer().part(layout).astype(np.float32))
    assert {name: bool(values.all()) for name, values in shared.items()} == {
        "head.weight": False,
        "head.bias": False,
        "body.weight": True,
        "body.bias": True,
    }


@pytest.mark.parametrize("kind", ["moon", "fedper"])
def test_a_model_without_a_layer_to_tell_apart_is_refused_in_the_first_round(kind):
    with pytest.raises(ScenarioError, match=r"learning.algorithm"):
        run(Bare(), kind, rounds=1)
