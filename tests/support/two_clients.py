"""What two clients of six samples each learn by an executor."""

from collections.abc import Iterable

import numpy as np

from fedsim.learning import Executor, TrainingJob, TrainingResult, TrainingSetup
from fedsim.learning.executors.sequential import SequentialExecutor


def learned(executor: Executor, setup: TrainingSetup) -> np.ndarray:
    base = SequentialExecutor(setup).flat.layout.initial
    jobs = [TrainingJob(base, np.arange(6 * i, 6 * i + 6), 1.0, np.random.default_rng(i)) for i in range(2)]
    return np.stack([one.difference for one in executor.train(jobs)])


def bits(results: Iterable[TrainingResult]) -> list[tuple[bytes, float, float, dict[str, bytes]]]:
    return [
        (one.difference.tobytes(), one.loss, one.loss_rms, {name: a.tobytes() for name, a in one.state.items()})
        for one in results
    ]
