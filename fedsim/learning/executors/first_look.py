"""Whether the loss and the metrics of a task fit what the model says, tried on one sample before a run."""

import torch

from fedsim.answers import FAILURES, attributed, in_a_line
from fedsim.code_digest import is_builtin
from fedsim.errors import FedsimError, ScenarioError
from fedsim.learning.executors.contracts import TrainingSetup
from fedsim.learning.executors.objective import Objective
from fedsim.learning.models.flat_module import build_flat
from fedsim.learning.models.inputs import Inputs
from fedsim.learning.models.settings import MODELS, own_name
from fedsim.learning.tasks.contracts import TASKS
from fedsim.learning.tasks.of_labels import Classification


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
        scores = module(Inputs(data).of(torch.from_numpy(data.train_x[:1].copy()))).float()
        targets = torch.from_numpy(data.train_y[:1].copy())
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
    if tuple(found.shape) != (1, width):
        raise ScenarioError(f"{fits}: loss and metrics give {tuple(found.shape[1:])} sums, and {width} are declared")
