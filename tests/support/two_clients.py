"""What two clients of six samples each learn by an executor."""

import numpy as np

from fedsim.learning import Executor, TrainingJob, TrainingSetup
from fedsim.learning.executors.sequential import SequentialExecutor


def learned(executor: Executor, setup: TrainingSetup) -> np.ndarray:
    """Return both differences from the first model, shape (2, d)."""
    base = SequentialExecutor(setup).flat.layout.initial
    jobs = [TrainingJob(base, np.arange(6 * i, 6 * i + 6), 1.0, np.random.default_rng(i)) for i in range(2)]
    return np.stack([one.difference for one in executor.train(jobs)])
