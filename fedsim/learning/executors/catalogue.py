"""The kinds of executors."""

from typing import Final

from fedsim.learning.executors.contracts import SEQUENTIAL
from fedsim.registry import Registry

AUTO: Final = "auto"
"""The kind that stands for the one with the least estimated time."""

PROCESSES: Final = "processes"
"""The kind that trains in worker processes."""

STACKED: Final = "stacked"
"""The kind that trains a whole cohort as one computation."""

GRAPHS: Final = "graphs"
"""The kind that trains on a GPU by CUDA graphs."""

RAY: Final = "ray"
"""The kind that trains by actors of a Ray cluster."""

EXECUTORS: Final = Registry(
    "executor",
    "fedsim.executors",
    ("train", "evaluate"),
    {
        AUTO: "fedsim.learning.executors.auto:AutoExecutor",
        SEQUENTIAL: "fedsim.learning.executors.sequential:SequentialExecutor",
        PROCESSES: "fedsim.learning.executors.processes:ProcessesExecutor",
        GRAPHS: "fedsim.learning.executors.graphs:GraphsExecutor",
        STACKED: "fedsim.learning.executors.stacked.executor:StackedExecutor",
        RAY: "fedsim.learning.executors.on_ray:RayExecutor",
    },
    default=AUTO,
)
