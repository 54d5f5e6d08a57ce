"""Whether the loss and the metrics of a task fit what the model says, tried on two samples before a run."""

from typing import Final

import torch

from fedsim.answers import attributed
from fedsim.code_digest import is_builtin
from fedsim.errors import FedsimError, ScenarioError
from fedsim.learning.executors.contracts import TrainingSetup
from fedsim.learning.executors.objective import Objective
from fedsim.learning.models.flat_module import build_flat
from fedsim.learning.models.inputs import Inputs
from fedsim.learning.models.settings import MODELS, own_name
from fedsim.learning.tasks.contracts import TASKS
from fedsim.learning.tasks.of_labels import Classification

_TRIED: Final = 2
"""Samples: with one alone, a row for the whole batch would pass for that of the sample."""


def check_fit(setup: TrainingSetup) -> None:
    """Refuse a task whose loss or metrics cannot be made of the scores of the model.

    A classification with metrics of fedsim's by a model of fedsim's always fits, and is not tried.

    Raises
    ------
    ScenarioError, PartError
        If it is such a task; `PartError` if a part of the user's own fails.
    """
    width = setup.scores.width
    known = type(setup.task) is Classification and all(is_builtin(type(one)) for one in setup.task.metrics)
    if known and own_name(setup.model) is None:
        return
    data, objective = setup.data, Objective(setup)
    module = build_flat(setup.model, data.shape, setup.outputs, setup.seed).module.eval()
    with torch.no_grad():
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
        except Exception as failure:
            raise attributed(failure) or ScenarioError(f"{fits} ({failure})") from failure
    for name, (given, declared) in widths.items():
        if given != declared:
            raise ScenarioError(
                f"learning.task.metrics: {name}: sums of {given} numbers for each sample are not allowed; allowed: "
                f"{declared}, as its width says"
            )
    if tuple(found.shape) != (len(targets), width):
        raise ScenarioError(f"{fits}: loss and metrics give {tuple(found.shape[1:])} sums, and {width} are declared")
