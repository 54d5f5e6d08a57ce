"""Generators that belong to the process: two runs at once in threads draw what each draws alone."""

import random
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from torch import nn

from fedsim import simulate
from tests.support.short_runs import of_learning


class Drawing(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Flatten(), nn.Linear(64, 16), nn.Dropout(0.5), nn.Linear(16, 10))

    def forward(self, x):
        return self.layers(x) + 0.01 * (random.random() + np.random.normal())  # noqa: NPY002, S311


def losses(seed):
    learning = {"data": {"kind": "digits", "train_limit": 80}, "model": Drawing}
    scenario = of_learning(learning, rounds=3, cohort=None, seed=seed)
    return simulate(scenario, store=False, executor="sequential").evaluations.column("loss").to_pylist()


def test_runs_in_threads_are_those_one_after_the_other():
    alone = [losses(seed) for seed in range(4)]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(losses, range(4))) == alone
