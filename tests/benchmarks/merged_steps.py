"""Sums of single steps: clients one after the other, their gradients by torch's vmap, and all as one batch.

    python tests/benchmarks/merged_steps.py                 # half a minute
    python tests/benchmarks/merged_steps.py --repeats 9

A cohort of clients with one sample or few does one step each, and the server takes the mean: 1,024 clients with images
and the network of FedSampling's Fig. 3, and 256 with texts and the network of its Table 1, which has dropout. Samples
are made up. Times are medians, on one thread. Not a test: it asserts nothing.
"""

import argparse
import statistics
import time
from collections.abc import Callable

import numpy as np
import torch
from torch.func import functional_call, grad, vmap
from torch.nn import functional

from fedsim.learning import MLP, Dataset, LocalTraining, TrainingJob, TrainingSetup
from fedsim.learning.executors.contracts import MergedJob
from fedsim.learning.executors.merged.executor import MergedExecutor
from fedsim.learning.executors.sequential import SequentialExecutor
from fedsim.learning.models.inputs import Inputs
from fedsim.learning.models.sequences import TextCNN

AT_ONCE = 64
"""Clients whose gradients stand side by side; with more of them memory becomes the bound."""


def images() -> TrainingSetup:
    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 256, (4000, 28, 28, 1), dtype=np.uint8), rng.integers(0, 10, 4000)
    data = Dataset(x, y, x[:100], y[:100], classes=10, pixel_max=255)
    return TrainingSetup(MLP(hidden=(64,)), data, LocalTraining(batch_size=32), seed=0)


def texts() -> TrainingSetup:
    rng = np.random.default_rng(0)
    x, y = rng.integers(1, 4000, (4000, 30)), rng.integers(0, 4, 4000)
    data = Dataset(x, y, x[:100], y[:100], classes=4, vocabulary=4000)
    model = TextCNN(embedding=32, filters=64, hidden=64, pooling=32)
    return TrainingSetup(model, data, LocalTraining(batch_size=32), seed=0)


COHORTS = {"Fig. 3, 1,024 clients": (images, 1024), "Table 1, 256 clients": (texts, 256)}


def median_s(work: Callable[[], object], repeats: int) -> float:
    """Return the median CPU time of some turns after one that warms up."""
    work()
    found = []
    for _ in range(repeats):
        began_s = time.process_time()
        work()
        found.append(time.process_time() - began_s)
    return statistics.median(found)


def compared(setup: TrainingSetup, clients: int, repeats: int) -> tuple[float, float, float]:
    """Return the seconds of a cohort by the sequential executor, by vmap, and by the executor "merged"."""
    single, merged = SequentialExecutor(setup), MergedExecutor(setup)
    rows = [np.arange(place, place + 1 + (place % 16 == 0)) for place in range(clients)]
    base, weights = single.flat.layout.initial, np.full(clients, 1 / clients)

    def generators() -> list[np.random.Generator]:
        return [np.random.default_rng(place) for place in range(clients)]

    def one_by_one() -> None:
        total = np.zeros(base.size)
        jobs = [TrainingJob(base, own, 1.0, rng) for own, rng in zip(rows, generators(), strict=True)]
        for result, weight in zip(single.train(jobs), weights, strict=True):
            total += result.difference.astype(np.float64) * weight

    module, inputs = single.flat.module, Inputs(setup.data)
    parameters = {name: one.detach() for name, one in module.named_parameters()}

    def loss(numbers: dict[str, torch.Tensor], x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return functional.cross_entropy(functional_call(module, numbers, (x[None],)), y[None])

    gradients = vmap(grad(loss), in_dims=(None, 0, 0), randomness="different")

    def mapped() -> None:
        module.train()
        for start in range(0, clients, AT_ONCE):
            # One sample of each client; further ones would make it slower still.
            chosen = np.array([own[0] for own in rows[start : start + AT_ONCE]])
            x = inputs.of(torch.from_numpy(setup.data.train_x[chosen])).contiguous()
            found = gradients(parameters, x, torch.from_numpy(setup.data.train_y[chosen]))
            for one in found.values():
                one.sum(0)

    def together() -> None:
        merged.train_sum(MergedJob(base, rows, weights, generators))

    torch.set_num_threads(1)
    one_s, mapped_s, merged_s = (median_s(work, repeats) for work in (one_by_one, mapped, together))
    return one_s, mapped_s, merged_s


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    print(f"{'':<24} {'one by one, ms':>16} {'vmap, ms':>12} {'ratio':>8} {'merged, ms':>12} {'ratio':>8}")
    for name, (made, clients) in COHORTS.items():
        one_s, mapped_s, merged_s = compared(made(), clients, options.repeats)
        times = f"{1e3 * one_s:>16.0f} {1e3 * mapped_s:>12.1f} {one_s / mapped_s:>8.1f} {1e3 * merged_s:>12.1f}"
        print(f"{name:<24} {times} {one_s / merged_s:>8.1f}", flush=True)


if __name__ == "__main__":
    main()
