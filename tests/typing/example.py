"""Every name of `fedsim`, used as a typed program would: checked by mypy in strict mode, and run by a test."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, assert_type

import numpy as np
import pyarrow as pa
from matplotlib.figure import Figure
from numpy.typing import NDArray
from torch import nn

import fedsim
from fedsim import (
    Cohort,
    Component,
    FedsimError,
    History,
    Reports,
    RoundView,
    Scenario,
    Study,
    StudyResult,
    Testbed,
    check_selector,
    draw,
    load_model,
    read_run,
    run,
    simulate,
    sweep,
)
from fedsim.arrays import FloatArray, IntArray
from fedsim.run_setup import RunSetup
from fedsim.testing import check_compute_time


class Freshest:
    """A selector: the clients that took part least, and of these those with most samples."""

    def __init__(self, cohort: int = 3) -> None:
        self.cohort = cohort
        self.delivered = 0

    def select(self, view: RoundView, rng: np.random.Generator) -> Cohort:
        assert_type(view.client, IntArray)
        assert_type(view.last_loss, FloatArray)
        assert_type(view.deadline_s, float | None)
        order = np.lexsort((-view.samples, view.participations))
        return Cohort(view.client[order[: self.cohort]])

    def observe(self, reports: Reports) -> None:
        self.delivered += int(reports.delivered.sum())


class Steady(Component):
    """A compute law: the same time for each sample, on every device."""

    requires: ClassVar[frozenset[str]] = frozenset({"samples"})
    samples_per_s: float = 200.0

    def build(self, run: RunSetup) -> "SteadyTimes":
        return SteadyTimes(self.samples_per_s)


class SteadyTimes:
    """Durations of local work."""

    def __init__(self, samples_per_s: float) -> None:
        self.samples_per_s = samples_per_s

    def duration_s(self, client: IntArray, draw: int, samples: FloatArray) -> FloatArray:
        return samples / self.samples_per_s

    def expected_s(self, samples: FloatArray) -> FloatArray:
        return samples / self.samples_per_s


def tables() -> Mapping[str, Any]:
    return {
        "name": "typed",
        "crowd": {"clients": 8},
        "learning": {"data": {"kind": "digits", "train_limit": 160}, "model": {"kind": "mlp", "hidden": [4]}},
        "network": "pause-two-speed",
        "devices": {"compute": Steady()},
        "rounds": {"count": 2},
        "selector": Freshest(cohort=3),
    }


def main(folder: Path) -> History:
    """Check the parts, run the scenario, and read, draw and load what it gave."""
    check_selector(Freshest, clients=6, rounds=3)
    check_compute_time(Steady())
    scenario = Scenario(**tables())
    assert_type(scenario.digest(), str)
    faster = scenario.replace({"devices.compute": Steady(samples_per_s=400.0)})
    assert_type(faster, Scenario)

    history = simulate(faster, store=False)
    assert_type(history, History)
    assert_type(history.participations, pa.Table)
    assert_type(history.time_to_accuracy(0.5), float | None)
    assert_type(history.curve("time", "accuracy"), tuple[FloatArray, FloatArray])
    assert_type(history.column("rounds", "end_s"), NDArray[Any])

    kept = run(scenario, folder / "typed", store=False)
    assert_type(read_run(folder / "typed"), History)
    assert_type(load_model(folder / "typed"), nn.Module)
    assert_type(draw([history, kept], x="round", out=folder / "both.png"), Figure)
    try:
        scenario.replace({"rounds.count": 0})
    except FedsimError as error:
        assert_type(str(error), str)
    with Testbed(faster) as testbed:
        result = testbed.round([0, 3], up_bits=1e6)
        assert_type(result.arrivals, IntArray)
        testbed.report(accuracy=0.5, loss=1.0)
        assert_type(testbed.now_s, float)
    study = Study.of(scenario, grid={"rounds.count": [1, 2]}, seeds=1, name="typed")
    assert_type(study, Study)
    assert_type(sweep(study, out=folder / "study"), StudyResult)
    assert_type(fedsim.__version__, str)
    return kept
