"""The kinds of executors."""

from typing import Final

from fedsim.learning.executors.contracts import SEQUENTIAL
from fedsim.registry import Registry

AUTO: Final = "auto"
"""The kind that stands for the fastest of `CANDIDATES`."""

PROCESSES: Final = "processes"
"""The kind that trains in worker processes."""

STACKED: Final = "stacked"
"""The kind that trains a whole cohort as one computation."""

STACKED_COMPILED: Final = "stacked-compiled"
"""The same with its steps compiled to machine code."""

CANDIDATES: Final = (SEQUENTIAL, PROCESSES, STACKED)
"""The kinds that `AUTO` compares. Of two that are about as fast it takes the first."""

EXECUTORS: Final = Registry(
    "executor",
    "fedsim.executors",
    ("train", "evaluate"),
    {
        AUTO: "fedsim.learning.executors.auto.auto:AutoExecutor",
        SEQUENTIAL: "fedsim.learning.executors.sequential:SequentialExecutor",
        PROCESSES: "fedsim.learning.executors.processes:ProcessesExecutor",
        STACKED: "fedsim.learning.executors.stacked.executor:StackedExecutor",
        STACKED_COMPILED: "fedsim.learning.executors.stacked.compiled:StackedCompiledExecutor",
    },
    default=AUTO,
)
