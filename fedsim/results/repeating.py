"""The evaluations that the run of a folder did not make, by a repetition of it."""

from functools import partial
from pathlib import Path
from typing import cast

from fedsim.history import History
from fedsim.learning import ExecutorUsed, Precision
from fedsim.results.manifest import SCENARIO
from fedsim.results.places import located
from fedsim.results.state import read_state
from fedsim.scenario import Scenario
from fedsim.simulation import EvaluatingAll, Simulation


def evaluate_all(folder: Path, history: History) -> History:
    """Repeat the run of a folder with its executor, and with an evaluation after each round; nothing is written."""
    scenario, state = Scenario.load(located(folder, SCENARIO)), read_state(folder)
    make = partial(Simulation)
    if state.executor is not None:
        used = ExecutorUsed.from_json(state.executor)
        precision = cast(Precision, used.precision)
        make = partial(make, executor=used.kind, device=used.device, precision=precision, fast=used.fast)
    return EvaluatingAll(scenario, make)(history)
