"""Client updates per second of every executor, beside a plain eager PyTorch loop that does the same work.

    python tests/benchmarks/updates_per_second.py [--job J1 ...] [--executor processes ...] [--precision bfloat16 ...]

prints for each job, executor and precision the updates per second and the ratio to the loop. What whole runs take
beside that is measured by `whole_runs.py`. The loop and all candidates take turns, after one round of each as a
warm-up; a ratio is the median over the turns of the loop's seconds by the candidate's in the same turn, since a
machine's speed drifts. Not a test: it asserts nothing.
"""

import argparse
import gc
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import torch
from training_jobs import JOBS, ON_A_GPU_ONLY, Job, PlainLoop, Shortened

from fedsim.arrays import IntArray, Vector
from fedsim.errors import FedsimError
from fedsim.learning import Dataset, EqualPartition, Executor, ExecutorChoice, TrainingJob, TrainingSetup
from fedsim.learning.executors.choice import GRAPHS, PROCESSES, STACKED
from fedsim.learning.models.flat_module import build_flat
from fedsim.streams import Streams

PRECISIONS = ("float32", "bfloat16")
Cohorts = Sequence[IntArray]


class Bare:
    """An executor that is handed cohort after cohort."""

    def __init__(self, job: Job, data: Dataset, rows: Cohorts, executor: str, device: str, precision: str) -> None:
        setup = TrainingSetup(job.model, data, job.local, 0)
        self.executor: Executor = ExecutorChoice.of(executor, device, precision).build(setup)  # type: ignore[arg-type]
        self._initial: Vector = build_flat(job.model, data.shape, data.classes, 0).layout.initial
        self._job, self._rows, self._states, self._measured = job, rows, {}, 0

    def rounds(self, cohorts: Cohorts) -> None:
        model, streams = self._initial, Streams(self._measured)
        self._measured += 1
        for number, cohort in enumerate(cohorts):
            jobs = [
                TrainingJob(model, self._rows[one], 1.0, streams.generator("training", one, number), state)
                for one in cohort.tolist()
                for state in [self._states.get(one, {})]
            ]
            model = self._trained(jobs, cohort.tolist(), model)

    def _trained(self, jobs: Sequence[TrainingJob], clients: Sequence[int], model: Vector) -> Vector:
        total, most = np.zeros(model.size), self.executor.max_batch
        for start in range(0, len(jobs), most):
            results = self.executor.train(jobs[start : start + most])
            for client, result in zip(clients[start : start + most], results, strict=True):
                total += result.difference
                if self._job.local.keep_optimizer_state:
                    self._states[client] = result.state
        moved = (model + total / len(jobs)).astype(np.float32)
        moved.flags.writeable = False
        return moved


def seconds(work: Callable[[Cohorts], object], cohorts: Cohorts) -> float:
    gc.collect()
    began = time.perf_counter()
    work(cohorts)
    return time.perf_counter() - began


def candidates(
    job: Job, data: Dataset, rows: Cohorts, device: str, chosen: argparse.Namespace
) -> Iterator[tuple[str, Bare]]:
    """Yield the executors that offer a device and a precision; the others are named in a line."""
    for executor in chosen.executor or (("sequential", PROCESSES, STACKED) if device == "cpu" else (GRAPHS,)):
        for precision in chosen.precision or PRECISIONS:
            try:
                yield f"{executor:<18}{precision:<10}", Bare(job, data, rows, executor, device, precision)
            except FedsimError as error:
                print(f"  {executor} {precision}: {error}")


def measure(name: str, device: str, chosen: argparse.Namespace) -> None:
    job = JOBS[name]
    print(f"{name} on {device}: {job.what}")
    if isinstance(job.data, Shortened) and not job.data.found(chosen.data_dir):
        print(f"  {job.data.of} is not there: noise of the same shape instead")
    data = job.data.load(chosen.data_dir)
    rows = EqualPartition().assign(data.train_y, data.classes, job.clients, Streams(0))
    loop, bare = PlainLoop(job, data, rows, device), dict(candidates(job, data, rows, device, chosen))
    rng = np.random.default_rng(0)
    cohorts = [rng.choice(job.clients, job.cohort, replace=False) for _ in range(job.rounds * job.longer)]
    plain, spent = [], {title: [] for title in bare}
    for one in (loop, *bare.values()):
        one.rounds(cohorts[:1])
    for _ in range(chosen.repeats):
        plain.append(seconds(loop.rounds, cohorts[: job.rounds]) * job.longer)
        for title, one in bare.items():
            spent[title].append(seconds(one.rounds, cohorts))
    for title, took in {f"{'plain loop':<18}{'float32':<10}": plain, **spent}.items():
        ratio = statistics.median(one / other for one, other in zip(plain, took, strict=True))
        print(f"  {title}{len(cohorts) * job.cohort / statistics.median(took):>11.1f}{ratio:>8.2f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--job", action="append", choices=JOBS, help="may be repeated; all by default")
    parser.add_argument("--executor", action="append", help="may be repeated; all built-in ones by default")
    parser.add_argument("--precision", action="append", choices=PRECISIONS, help="may be repeated; both by default")
    parser.add_argument("--device", action="append", help="may be repeated; cpu, and cuda where there is one")
    parser.add_argument("--repeats", type=int, default=5, help="turns of each candidate")
    parser.add_argument("--data-dir", help="where CIFAR-10 lies (default: $FEDSIM_DATA)")
    chosen = parser.parse_args()
    print(f"torch {torch.__version__}, {os.cpu_count()} cores, {torch.get_num_threads()} threads in the plain loop")
    print(f"  {'executor':<18}{'precision':<10}{'updates/s':>11}{'ratio':>8}")
    with tempfile.TemporaryDirectory() as folder:
        os.environ["FEDSIM_CACHE"] = folder
        for device in chosen.device or ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]:
            for name in chosen.job or [name for name in JOBS if device != "cpu" or name not in ON_A_GPU_ONLY]:
                measure(name, device, chosen)


if __name__ == "__main__":
    main()
