"""What a task or an algorithm of the user's own may make of a batch: each lie names the part and the client."""

from typing import Any, ClassVar

import numpy as np
import pytest
import torch

from fedsim import simulate
from fedsim.errors import PartError
from fedsim.learning import Classification, LocalAlgorithm, Task
from tests.support.short_runs import of_learning


class Own(Task):
    """Classification with a lie in its losses or its batches."""

    lie: str = ""

    @property
    def makes_batches(self) -> bool:
        return self.lie in _BATCHES

    def outputs(self, data: Any) -> int:
        return Classification().outputs(data)

    def losses(self, scores: Any, targets: Any) -> Any:
        losses = Classification().losses(scores, targets)
        # Only in trainings, so that no evaluation before them tells.
        return _LOSSES.get(self.lie, lambda same: same)(losses) if scores.requires_grad else losses

    def batch(self, inputs: Any, targets: Any, generator: Any) -> Any:
        return _BATCHES[self.lie](inputs, targets)


class Alone(LocalAlgorithm):
    """An algorithm with a lie in its loss or its part."""

    has_loss: ClassVar[bool] = True
    lie: str

    def loss(self, batch: Any) -> Any:
        return _ALONE[self.lie](batch)


class Part(LocalAlgorithm):
    """An algorithm whose part is no mask of the model's numbers."""

    changes_messages: ClassVar[bool] = True
    lie: str

    def part(self, layout: Any) -> Any:
        return {"list": [True], "numbers": np.ones(layout.initial.size), "short": np.ones(3, dtype=bool)}[self.lie]


_LOSSES: dict[str, Any] = {
    "whole": lambda losses: losses.long(),
    "detached": lambda losses: losses.detach(),
    "numpy": lambda losses: losses.detach().numpy(),
}
_BATCHES: dict[str, Any] = {
    "nothing": lambda *_: None,
    "arrays": lambda inputs, targets: (inputs.numpy(), targets.numpy()),
    "fewer": lambda inputs, targets: (inputs, targets[:1]),
}
_ALONE: dict[str, Any] = {
    "scores": lambda batch: batch.scores,
    "none": lambda _: None,
    "float": lambda _: 0.5,
    "detached": lambda batch: batch.data.detach(),
    "whole": lambda batch: batch.data.long(),
}


def fault_of(**table: Any) -> PartError:
    learning = {"data": {"kind": "digits", "train_limit": 60}, "model": {"kind": "mlp", "hidden": [3]}, **table}
    scenario = of_learning(learning, clients=3, cohort=1, results={"evaluate_start": False})
    with pytest.raises(PartError) as failed:
        simulate(scenario, store=False, executor="sequential")
    return failed.value


@pytest.mark.parametrize(
    ("lie", "words"),
    [("whole", "numbers of type torch.int64"), ("detached", "losses without a gradient"), ("numpy", "an array of")],
)
def test_losses_are_numbers_with_a_gradient(lie: str, words: str) -> None:
    fault = fault_of(task=Own(lie=lie))
    assert "Own.losses returned " in fault.what
    assert words in fault.what
    # It is seen before any client trains.
    assert fault.client is None
    assert fault.round == 0


@pytest.mark.parametrize("lie", _BATCHES)
def test_a_batch_is_two_tensors_of_as_many_rows(lie: str) -> None:
    fault = fault_of(task=Own(lie=lie))
    assert "Own.batch returned " in fault.what
    assert fault.client is not None


@pytest.mark.parametrize("lie", _ALONE)
def test_an_algorithm_s_loss_is_one_number_with_a_gradient(lie: str) -> None:
    fault = fault_of(algorithm=Alone(lie=lie))
    assert "Alone.loss returned " in fault.what
    assert fault.client is not None
    assert fault.round == 1


@pytest.mark.parametrize("lie", ["list", "numbers", "short"])
def test_a_part_is_a_mask_of_the_model_s_numbers(lie: str) -> None:
    assert "Part.part returned " in fault_of(algorithm=Part(lie=lie)).what


class Backward(torch.autograd.Function):
    """Fails as gradients go back, where no frame is the user's."""

    @staticmethod
    def forward(_: Any, losses: Any) -> Any:
        return losses.clone()

    @staticmethod
    def backward(_: Any, *gradients: Any) -> Any:
        return gradients[0].repeat(2)


class Late(Own):
    """Losses whose gradients have another shape."""

    def losses(self, scores: Any, targets: Any) -> Any:
        return Backward.apply(super().losses(scores, targets))


def test_a_failure_without_a_frame_of_the_user_s_names_the_task() -> None:
    fault = fault_of(task=Late())
    assert "Late.losses failed with RuntimeError" in fault.what
    assert fault.client is not None
