"""`check_local_algorithm` refuses broken algorithms, each for its own fault, and passes all kinds of the catalogue."""
# ruff: noqa: ARG005 (an algorithm takes what the contract gives)

from typing import ClassVar

import numpy as np
import pytest
from pydantic import ValidationError

from fedsim.errors import PartError
from fedsim.learning import LOCAL_ALGORITHMS, ExecutorChoice, LocalAlgorithm, Start, Stepped, Supervised, TrainingRun
from fedsim.streams import Streams
from fedsim.testing import check_local_algorithm
from tests.support.checks import passes, refuses
from tests.support.lies import lying, stating
from tests.support.tiny_images import Tiny


class Nesterov(LocalAlgorithm):
    """Clients start ahead of the server's model, along their last difference; sound."""

    remembers: ClassVar[bool] = True

    def begin(self, task):
        return Start(task.model + np.float32(0.5) * task.memory["last"] if task.memory else task.model)

    def end(self, task, difference):
        return {"last": difference}


class Writes(Nesterov):
    def begin(self, task):
        task.model[0] = 0
        return Start(task.model)


class Corrects(Nesterov):
    def begin(self, task):
        return Start(task.model, np.zeros(task.layout.parameters, dtype=np.float32))


class Counts(Nesterov):
    _calls: ClassVar[list[int]] = []

    def begin(self, task):
        self._calls.append(1)
        return Start(task.model + np.float32(len(self._calls)))


class Rising(Nesterov):
    changes_messages: ClassVar[bool] = True

    @property
    def ratios(self):
        return (1.0, 2.0)


class OwnLoss(LocalAlgorithm):
    """Twice the loss of the data; sound."""

    has_loss: ClassVar[bool] = True

    def loss(self, batch):
        return 2.0 * batch.data


KINDS = [LOCAL_ALGORITHMS.load(kind)() for kind in LOCAL_ALGORITHMS.builtin if kind != "fedbn"]
"""All but FedBN, which refuses the perceptron of the trial."""
test_sound_algorithms_pass = passes(check_local_algorithm, [*KINDS, Nesterov(), OwnLoss()])
test_broken_ones_are_refused_by_name = refuses(
    check_local_algorithm,
    [
        (stating(Nesterov, remembers=False)(), "remembers is False, though end returned a memory"),
        (Writes(), "the arrays of a task are read-only"),
        (
            lying(Nesterov, "begin", lambda self, task: Start(task.model[1:]))(),
            "begin returned .* floating-point numbers of shape",
        ),
        (lying(Nesterov, "begin", lambda self, task: task.model)(), "begin returned .* a Start"),
        (
            lying(Nesterov, "end", lambda self, task, difference: {"last": difference * np.float32(np.inf)})(),
            "end returned numbers that are not finite",
        ),
        (Corrects(), "corrects is False, though begin gave an offset"),
        (Counts(), "begin: the answer differs when it is repeated"),
        (lying(Nesterov, "numbers_more", lambda self, layout: 5)(), "changes_messages is False"),
        (
            stating(Nesterov, server_keeps=True, step=lambda self, gathered: Stepped(gathered.update[1:], {}))(),
            "step returned",
        ),
        (stating(Nesterov, corrects="no")(), "corrects: 'no' is not allowed"),
        (Rising(), "ratios: .* they fall from 1"),
        (lying(OwnLoss, "loss", lambda self, batch: batch.data.detach())(), "loss returned a loss without a gradient"),
        (
            lying(Nesterov, "own_model", lambda self, layout, model, memory: model + np.float32(1))(),
            "personal is False, though own_model returned another model",
        ),
        (
            stating(Nesterov, personal=True, own_model=lambda self, layout, model, memory: model[1:])(),
            "own_model returned .* floating-point numbers of shape",
        ),
    ],
    rounds=2,
)


def loss(self, batch):
    return 0 * batch.data


def step(self, gathered):
    return Stepped(0 * gathered.update, {})


@pytest.mark.parametrize(
    ("member", "words"),
    [
        (loss, "Lie.loss is never called, since has_loss is False; allowed: has_loss that is True"),
        (step, "Lie.step is never called, since server_keeps is False; allowed: server_keeps that is True"),
    ],
)
def test_methods_that_nobody_would_call_are_refused(member, words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        stating(LocalAlgorithm, **{member.__name__: member})()


@pytest.mark.parametrize("executor", ["sequential", "stacked"])
def test_a_run_refuses_an_offset_that_nobody_would_add(executor: str) -> None:
    table = {"data": Tiny(), "model": {"hidden": [4]}, "algorithm": Corrects()}
    learner = Supervised.model_validate(table).build(TrainingRun(4, Streams(0), executor=ExecutorChoice(executor)))
    model = learner.initial()
    with pytest.raises(PartError, match="begin returned a Start with an offset\n  allowed: one without, since"):
        learner.vector(learner.aggregate(model, learner.updates(model, np.arange(2)), np.array([0.5, 0.5])))
