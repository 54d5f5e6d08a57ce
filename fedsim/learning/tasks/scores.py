"""How the sums of an evaluation become its loss and its metrics."""

import itertools
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import replace
from typing import Final

import numpy as np

from fedsim.arrays import FloatArray
from fedsim.code_digest import is_builtin
from fedsim.errors import ScenarioError
from fedsim.learning.evaluation import Evaluation
from fedsim.learning.generators import own_generators
from fedsim.learning.tasks.contracts import METRIC, Task
from fedsim.learning.tasks.of_labels import Classification

ACCURACY: Final = "accuracy"
"""The metric that has a column of its own."""


class Scores:
    """The sums of which evaluations are made: the summed loss, then the sums of each metric."""

    def __init__(self, task: Task, outputs: int) -> None:
        self.metrics = metrics = [METRIC.checked(METRIC.checked(one).bound(task)) for one in task.metrics]
        self._metrics = {one.name: one for one in metrics}
        if len(self._metrics) < len(metrics):
            raise ScenarioError(
                f"learning.task.metrics: the names {', '.join(one.name for one in metrics)} are not allowed; each "
                "must be that of one metric"
            )
        ends = np.cumsum([0, *(one.width(outputs) for one in metrics)])
        self._places = [slice(int(start), int(stop)) for start, stop in itertools.pairwise(ends)]
        self.width = 1 + int(ends[-1])
        self._own = not all(is_builtin(type(one)) for one in task.metrics)

    def evaluation(self, totals: FloatArray, samples: int) -> Evaluation:
        loss, sums = float(totals[0]) / samples, totals[1:]
        with own_generators(0) if self._own else nullcontext():
            found = {
                name: float(one.value(sums[place], samples))
                for (name, one), place in zip(self._metrics.items(), self._places, strict=True)
            }
        return Evaluation(found.get(ACCURACY, float("nan")), loss, found, tuple(sums.tolist()), samples)

    def record(self, evaluation: Evaluation) -> dict[str, float]:
        kept = {str(number): total for number, total in enumerate(evaluation.sums)}
        return {"accuracy": evaluation.accuracy, "loss": evaluation.loss, **kept}

    def of_record(self, record: Mapping[str, float], samples: int) -> Evaluation:
        if self.width > 1 and "0" not in record:  # of an executor of the user's own that gives no sums
            return Evaluation(record["accuracy"], record["loss"])
        sums = np.array([record[str(number)] for number in range(self.width - 1)])
        return replace(self.evaluation(np.concatenate([[0.0], sums]), samples), loss=record["loss"])


def own_task(task: Task) -> bool:
    """Return whether a task is another one than classification with its defaults, metrics left aside."""
    return task.model_copy(update={"metrics": ()}) != Classification(metrics=())
