"""Whether model, loss and metrics of a task fit the data, tried on a few samples before a run."""

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray

from fedsim.answers import FAILURES, attributed, in_a_line
from fedsim.code_digest import is_builtin
from fedsim.errors import FedsimError, ScenarioError
from fedsim.learning.data.datasets import Dataset
from fedsim.learning.executors.contracts import TrainingSetup
from fedsim.learning.executors.objective import Objective
from fedsim.learning.executors.own_code import named_faults
from fedsim.learning.models.flat_module import build_flat
from fedsim.learning.models.inputs import Inputs
from fedsim.learning.models.settings import MODELS, own_name
from fedsim.learning.tasks.contracts import TASKS
from fedsim.learning.tasks.of_labels import Classification

_TRIED: Final = 2
"""Samples whose scores are tried: a row for a batch of one would pass for that of the sample."""
_TOGETHER: Final = 200
"""Samples that are tried at once."""


def check_fit(setup: TrainingSetup) -> None:
    """Refuse a task whose loss or metrics cannot be made of the model's scores, or whose loss has no gradient.

    A model of the user's own is tried on the smallest and the largest tokens too: mapped over clients, torch does not
    check indices, and an embedding that is too small would read the numbers of another client.
    """
    width = setup.scores.width
    known = type(setup.task) is Classification and all(is_builtin(type(one)) for one in setup.task.metrics)
    if known and own_name(setup.model) is None:
        return
    data, objective = setup.data, Objective(setup)
    module = build_flat(setup.model, data.shape, setup.outputs, setup.seed).module.eval()
    with torch.no_grad(), named_faults(setup):
        for samples in _extremes(data) if own_name(setup.model) is not None else ():
            module(Inputs(data).of(torch.from_numpy(samples)))
        scores = module(Inputs(data).of(torch.from_numpy(data.train_x[:_TRIED].copy()))).float()
        targets = torch.from_numpy(data.train_y[:_TRIED].copy())
        fits = (
            f"learning.task: {TASKS.kind_of(setup.task)!r} does not fit learning.model = "
            f"{MODELS.kind_of(setup.model)!r}, whose scores of a sample have the shape {tuple(scores.shape[1:])} where "
            f"its targets have {tuple(targets.shape[1:])}"
        )
        try:
            found = objective.sums(scores, targets)
            widths = objective.widths(scores, targets, setup.outputs)
        except FedsimError:
            raise
        except FAILURES as failure:
            raise attributed(failure) or ScenarioError(f"{fits} ({in_a_line(str(failure))})") from failure
    for name, (given, declared) in widths.items():
        if given != declared:
            raise ScenarioError(
                f"learning.task.metrics: {name}: sums of {given} numbers for each sample are not allowed; allowed: "
                f"{declared}, as its width says"
            )
    if tuple(found.shape) != (len(targets), width):
        raise ScenarioError(f"{fits}: loss and metrics give {tuple(found.shape[1:])} sums, and {width} are declared")
    if not is_builtin(type(setup.task)):
        # The contract of a task refuses losses without a gradient, of which nothing would be learned.
        objective.losses(scores.clone().requires_grad_(), targets)


def _extremes(data: Dataset) -> Iterator[NDArray[Any]]:
    """Yield samples with the smallest and the largest whole number at each place."""
    for samples in (data.train_x, data.test_x) if data.form in ("tokens", "tensors") else ():
        if samples.dtype.kind in "iu":
            inner = tuple(range(1, samples.ndim)) if samples.ndim > 2 else ()
            rows = np.unique([samples.max(inner).argmax(0), samples.min(inner).argmin(0)])
            yield from (samples[rows[start : start + _TOGETHER]] for start in range(0, rows.size, _TOGETHER))
