"""What a user should know of the data of a run, and of what counts of them."""

import numpy as np

from fedsim.learning.data.datasets import Dataset
from fedsim.learning.data.division import shared_labels
from fedsim.learning.tasks.contracts import Task
from fedsim.learning.tasks.ignored import IgnoringTask, counted


def notes_of(data: Dataset, task: Task) -> tuple[str, ...]:
    """Return sentences on a data set: its division, what fills samples up, what is ignored, labels without samples."""
    told = (*data.notes, _labels(data), _ignored(data, task))
    return tuple(f"learning.data: {note}" for note in told if note)


def _labels(data: Dataset) -> str:
    """Return how many labels training and test set share where a label of a test sample is in no training sample."""
    if data.labels is None or data.classes is None or data.notes or np.isin(data.test_y, data.labels).all():
        return ""
    return shared_labels(data.labels, data.test_y, data.classes)


def _ignored(data: Dataset, task: Task) -> str:
    if not isinstance(task, IgnoringTask) or not task.ignore:
        return ""
    parts = []
    for targets in (data.train_y, data.test_y):
        parts.append(f"{targets.size - np.count_nonzero(counted(targets, task.ignore)):,} of {targets.size:,}")
    values = ", ".join(map(str, task.ignore))
    return f"targets of {values} count for nothing (learning.task.ignore): {parts[0]} in training, {parts[1]} in tests"
