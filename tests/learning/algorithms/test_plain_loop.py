"""Algorithms against a plain loop over a module of torch in float64: full batches, a schedule, shares of the work."""

import copy
import math

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

from fedsim.learning import Supervised, TrainingRun
from fedsim.learning.data.partitions.contracts import assigned
from fedsim.learning.data.partitions.sizes import EqualPartition
from fedsim.streams import Streams
from tests.support.tiny_targets import TinyTargets

CLIENTS, STEPS, RATE, FACTOR = 5, 6, 0.4, 0.7
ROUNDS = (
    ([0, 1, 2], [1.0, 0.5, 1.0]),
    ([0, 3], [0.3, 1.0]),
    ([0, 1, 2], [1.0, 1.0, 0.5]),
    ([1, 3, 0], [0.5, 1.0, 1.0]),
)
WEIGHTS = {2: [0.4, 0.6], 3: [0.5, 0.2, 0.3]}
DATA = TinyTargets(of="labels").load()
X, Y = torch.from_numpy(DATA.train_x.astype(np.float64)), torch.from_numpy(DATA.train_y.copy())
ROWS = assigned(EqualPartition(), DATA, CLIENTS, Streams(3))


def network():
    with torch.random.fork_rng():
        torch.manual_seed(1)
        return nn.Sequential(nn.Linear(5, 6), nn.Tanh(), nn.Linear(6, 3))


class Loop:
    """One server and its clients, with all that the algorithms keep."""

    def __init__(self, kind: str, options: dict[str, float]) -> None:
        self.net = network().double()
        self.parameters = list(self.net.parameters())
        self.model = nn.utils.parameters_to_vector(self.parameters).detach().clone()
        self.kind, self.options = kind, options
        self.zero = torch.zeros_like(self.model)
        self.common, self.h = self.zero, self.zero
        self.kept = {}

    def models(self):
        """Yield the model after each round."""
        for clients, work in ROUNDS:
            model, update, changes, drift = self.model, self.zero, self.zero, self.zero
            for client, share, weight in zip(clients, work, WEIGHTS[len(clients)], strict=True):
                rates = RATE * FACTOR ** np.arange(math.ceil(share * STEPS))
                moved = self.trained(client, rates) - model
                update = update + weight * moved
                drift = drift + moved
                before = self.kept.get(client, self.zero)
                if self.kind == "scaffold":
                    self.kept[client] = before - self.common - moved / rates.sum()
                    changes = changes + self.kept[client] - before
                if self.kind == "feddyn":
                    self.kept[client] = before - self.options["alpha"] * moved
                if self.kind == "moon":
                    self.kept[client] = model + moved
            if self.kind == "fednova":
                update = self.normalised(model, clients, work)
            self.model = model + update
            self.common = self.common + changes / CLIENTS
            if self.kind == "feddyn":
                self.h = self.h - self.options["alpha"] / CLIENTS * drift
                self.model = self.model - self.h / self.options["alpha"]
            yield self.model

    def normalised(self, model, clients, work):
        """Return the update of FedNova, with its norms in closed form."""
        mu, parts = self.options["mu"], []
        for client, share, weight in zip(clients, work, WEIGHTS[len(clients)], strict=True):
            rates = RATE * FACTOR ** np.arange(math.ceil(share * STEPS))
            pulled = rates.mean() * mu
            norm = (1 - (1 - pulled) ** rates.size) / pulled if mu else rates.size
            parts.append((weight, rates.size, (self.trained(client, rates) - model) / norm))
        effective = sum(weight * steps for weight, steps, _ in parts)
        return effective * sum(weight * part for weight, _, part in parts)

    def trained(self, client, rates):
        """Return a client's model after full batches."""
        weights, kept = self.model.clone(), self.kept.get(client)
        for rate in rates.tolist():
            nn.utils.vector_to_parameters(weights, self.parameters)
            hidden = self.net[1](self.net[0](X[ROWS[client]]))
            loss = functional.cross_entropy(self.net[2](hidden), Y[ROWS[client]])
            if self.kind == "moon" and kept is not None:
                near, far = (
                    functional.cosine_similarity(hidden, self.hidden(one, client)) / self.options["temperature"]
                    for one in (self.model, kept)
                )
                loss = loss - self.options["mu"] * (near.exp() / (near.exp() + far.exp())).log().mean()
            gradient = nn.utils.parameters_to_vector(torch.autograd.grad(loss, self.parameters))
            if self.kind == "scaffold":
                gradient = gradient + self.common - (self.zero if kept is None else kept)
            if self.kind == "fednova":
                gradient = gradient + self.options["mu"] * (weights - self.model)
            if self.kind == "feddyn":
                gradient = gradient + self.options["alpha"] * (weights - self.model)
                gradient = gradient - (self.zero if kept is None else kept)
            weights = weights - rate * gradient
        return weights

    def hidden(self, weights, client):
        """Return what enters the last layer of another model."""
        other = copy.deepcopy(self.net)
        nn.utils.vector_to_parameters(weights, other.parameters())
        return other[1](other[0](X[ROWS[client]])).detach()


@pytest.mark.parametrize(
    ("kind", "options"),
    [("plain", {}), ("scaffold", {}), ("feddyn", {"alpha": 0.3}), ("moon", {"mu": 5.0, "temperature": 0.5})]
    + [("fednova", {"mu": mu}) for mu in (0.0, 0.3)],
)
def test_four_rounds_are_those_of_a_plain_loop(kind, options):
    schedule = {"kind": "decay", "by": "step", "every": 1, "factor": FACTOR}
    local = {"learning_rate": RATE, "batch_size": 1000, "steps": STEPS, "schedule": schedule}
    table = {"data": TinyTargets(of="labels"), "split": "equal", "model": network(), "local": local}
    learner = Supervised.model_validate({**table, "algorithm": {"kind": kind, **options}}).build(
        TrainingRun(CLIENTS, Streams(3))
    )
    model = learner.initial()
    for (clients, work), wanted in zip(ROUNDS, Loop(kind, options).models(), strict=True):
        updates = learner.updates(model, np.array(clients), work=np.array(work))
        model = learner.aggregate(model, updates, np.array(WEIGHTS[len(clients)]))
        np.testing.assert_allclose(learner.vector(model), wanted.numpy(), rtol=1e-3, atol=2e-5)
