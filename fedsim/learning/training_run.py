"""What a learner is built with."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from fedsim.learning.steps.listed import BringsSteps
from fedsim.run_setup import RunSetup

if TYPE_CHECKING:
    from fedsim.learning.executors.choice import ExecutorChoice
    from fedsim.learning.lineage.known import Keeping
    from fedsim.learning.store.choice import StoreChoice


@dataclass(frozen=True, eq=False, kw_only=True)
class TrainingRun(RunSetup):
    """The argument ``run`` of a learner's ``build(run)``: also what is chosen outside of scenarios.

    Attributes
    ----------
    parts : the other parts of the scenario by path, for the steps that they bring to updates
    store : where results of training are stored and looked up; see `fedsim.learning.store.choice.open_store`
    data_dir : where data sets are looked for; see `fedsim.learning.data_folder`
    executor : what computes trainings; by default one client after the other
    keeping : which models stay in the store; all by default
    """

    parts: Mapping[str, BringsSteps] = field(default_factory=dict)
    store: "StoreChoice" = None
    data_dir: Path | None = None
    executor: "ExecutorChoice | None" = None
    keeping: "Keeping | None" = None
