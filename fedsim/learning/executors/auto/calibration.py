"""How fast executors train, on made-up jobs like those of a run.

The jobs have generators and models of their own, so that a calibration changes neither draws nor results.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from fedsim.arrays import FloatArray
from fedsim.learning.data.shapes import positions
from fedsim.learning.executors.contracts import Executor, Expected, TrainingJob, TrainingSetup
from fedsim.learning.local_training import FORWARD_AND_BACKWARD

# About what one thread does. They only have to say whether a run takes seconds or minutes, alike on every machine.
_STEP_S: Final = 0.3e-3
_FLOPS_PER_S: Final = 50e9

_MEASURED_S: Final = 0.5
"""About how long one thread needs for the jobs of one measurement."""
_FEWEST: Final = 4
_REPEATS: Final = 2
_SHORT: Final = 0.1
_FAR: Final = 0.5
"""Share of the fastest executor's whole measurement after which a slower one is given up."""


def is_long(setup: TrainingSetup, expected: Expected, limit_s: float) -> bool:
    """Return whether one thread would train for at least ``limit_s`` in the whole run, to a rough estimate."""
    from fedsim.learning.models.flat_module import build_flat  # imports torch

    parameters = build_flat(setup.model, setup.data.shape, setup.outputs, seed=0).layout.parameters
    updates = expected.rounds * expected.cohort
    # A layer multiplies by a weight at most once for each pixel or word. Most runs are short even so, and a count takes
    # longer.
    most = 2.0 * FORWARD_AND_BACKWARD * parameters * positions(setup.data.shape)
    if updates * training_s(setup, expected, most).mean() < limit_s:
        return False
    return bool(updates * training_s(setup, expected).mean() >= limit_s)


def training_s(setup: TrainingSetup, expected: Expected, flops: float | None = None) -> FloatArray:
    """Return about how long one thread needs to train each client once, seconds, shape (K,).

    It is computed and not measured, so that it is the same in every run.
    """
    if flops is None:
        from fedsim.learning.models.flops import training_flops  # imports torch

        flops = training_flops(setup.model, setup.data.shape, setup.outputs)
    steps = setup.local.batches(expected.samples)
    return np.asarray(steps * _STEP_S + setup.local.work_samples(expected.samples) * flops / _FLOPS_PER_S)


def jobs_like(setup: TrainingSetup, expected: Expected, share: float = 1.0) -> list[TrainingJob]:
    """Return jobs for clients of typical sizes: at most a cohort, shortened where they would take long."""
    from fedsim.learning.models.flat_module import build_flat  # imports torch

    layout = build_flat(setup.model, setup.data.shape, setup.outputs, seed=0).layout
    # Clients without samples, or with too few for a batch, are never trained.
    trained = setup.local.batches_per_epoch(expected.samples, layout.smallest_batch) > 0
    expected = replace(expected, samples=expected.samples[trained])
    typical_s = float(np.median(training_s(setup, expected)))
    count = min(expected.cohort, max(_FEWEST, round(_MEASURED_S / typical_s)))
    work = min(1.0, _MEASURED_S / (count * typical_s))
    sizes = np.quantile(expected.samples, (np.arange(count) + 0.5) / count, method="nearest")
    return [
        TrainingJob(layout.initial, np.arange(size), work * share, np.random.default_rng(number))
        for number, size in enumerate(sizes.tolist())
    ]


def updates_per_s(executor: Executor, setup: TrainingSetup, expected: Expected, to_beat: float = 0.0) -> float:
    """Return how many clients an executor trains in a second: the best of a few measurements after a warm-up.

    The measurement of an executor that is far behind ends early.
    """
    _train_s(executor, jobs_like(setup, expected, _SHORT))
    short_s, count = _train_s(executor, jobs_like(setup, expected, _SHORT)), len(jobs_like(setup, expected))
    if to_beat and short_s > _FAR * count / to_beat:
        return _SHORT * count / short_s
    return count / min(_train_s(executor, jobs_like(setup, expected)) for _ in range(_REPEATS))


def _train_s(executor: Executor, jobs: Sequence[TrainingJob]) -> float:
    began = time.perf_counter()
    for start in range(0, len(jobs), executor.max_batch):
        for _ in executor.train(jobs[start : start + executor.max_batch]):
            pass
    return time.perf_counter() - began


def fastest(speeds: Mapping[str, float], margin: float = 1.1) -> str:
    """Return the first kind, unless a later one is clearly faster, and so on."""
    kinds = list(speeds)
    best = kinds[0]
    for kind in kinds[1:]:
        if speeds[kind] > margin * speeds[best]:
            best = kind
    return best
