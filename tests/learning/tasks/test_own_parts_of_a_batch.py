"""What a task or an algorithm of the user's own may make of a batch: each lie names the part and the client."""

import re
from typing import ClassVar

import numpy as np
import pytest
import torch

from fedsim import simulate
from fedsim.errors import PartError
from fedsim.learning import Classification, LocalAlgorithm, Task
from tests.support.short_runs import of_learning


class Own(Task):
    lie: str = ""

    @property
    def makes_batches(self):
        return self.lie in _BATCHES

    def outputs(self, data):
        return Classification().outputs(data)

    def losses(self, scores, targets):
        losses = Classification().losses(scores, targets)
        # Only in trainings, so that no evaluation before them tells.
        return _LOSSES.get(self.lie, lambda same: same)(losses) if scores.requires_grad else losses

    def batch(self, inputs, targets, generator):
        return _BATCHES[self.lie](inputs, targets)


class Alone(LocalAlgorithm):
    has_loss: ClassVar[bool] = True
    lie: str

    def loss(self, batch):
        return _ALONE[self.lie](batch)


class Part(LocalAlgorithm):
    changes_messages: ClassVar[bool] = True
    lie: str

    def part(self, layout):
        return {"list": [True], "numbers": np.ones(layout.initial.size), "short": np.ones(3, dtype=bool)}[self.lie]


_LOSSES = {
    "whole": lambda losses: losses.long(),
    "detached": lambda losses: losses.detach(),
    "numpy": lambda losses: losses.detach().numpy(),
}
_BATCHES = {
    "nothing": lambda *_: None,
    "arrays": lambda inputs, targets: (inputs.numpy(), targets.numpy()),
    "fewer": lambda inputs, targets: (inputs, targets[:1]),
}
_ALONE = {
    "scores": lambda batch: batch.scores,
    "none": lambda _: None,
    "float": lambda _: 0.5,
    "detached": lambda batch: batch.data.detach(),
    "whole": lambda batch: batch.data.long(),
}


FAULTS = [
    # Losses are looked at before any client trains.
    ({"task": Own(lie="whole")}, "Own.losses returned numbers of type torch.int64", 0),
    ({"task": Own(lie="detached")}, "Own.losses returned .*losses without a gradient", 0),
    ({"task": Own(lie="numpy")}, "Own.losses returned .*an array of", 0),
    *(({"task": Own(lie=lie)}, "Own.batch returned ", 1) for lie in _BATCHES),
    *(({"algorithm": Alone(lie=lie)}, "Alone.loss returned ", 1) for lie in _ALONE),
    *(({"algorithm": Part(lie=lie)}, "Part.part returned ", None) for lie in ("list", "numbers", "short")),
]


class Backward(torch.autograd.Function):
    """Fails as gradients go back, where no frame is the user's."""

    @staticmethod
    def forward(_, losses):
        return losses.clone()

    @staticmethod
    def backward(_, *gradients):
        return gradients[0].repeat(2)


class Late(Own):
    def losses(self, scores, targets):
        return Backward.apply(super().losses(scores, targets))


@pytest.mark.parametrize(("table", "words", "number"), [*FAULTS, ({"task": Late()}, "Late.losses failed with Runt", 1)])
def test_a_lie_names_the_part_and_in_a_training_the_client(table, words, number):
    learning = {"data": {"kind": "digits", "train_limit": 60}, "model": {"kind": "mlp", "hidden": [3]}, **table}
    scenario = of_learning(learning, clients=3, cohort=1, results={"evaluate_start": False})
    with pytest.raises(PartError) as failed:
        simulate(scenario, store=False, executor="sequential")
    assert re.search(words, failed.value.what)
    if number is not None:
        assert (failed.value.client is not None, failed.value.round) == (number == 1, number)
