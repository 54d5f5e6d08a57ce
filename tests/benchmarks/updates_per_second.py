"""Client updates per second of every executor, beside a plain eager PyTorch loop that does the same work.

    python tests/benchmarks/updates_per_second.py [--job J1 ...] [--executor processes ...] [--precision bfloat16 ...]

prints one table: for each job, executor and precision the updates per second, the ratio to the loop, the line to pass
and the goal. What whole runs take beside that is measured by `whole_runs.py`.

The loop and all candidates take turns, after one round of each as a warm-up; a ratio is the median over the turns of
the loop's seconds by the candidate's in the same turn, since a machine's speed drifts. On a busy machine ``--clock
processor`` counts processor time, for executors that train in this process. Not a test: it asserts nothing.
"""

import argparse
import gc
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence

import numpy as np
import torch
from training_jobs import JOBS, Job, PlainLoop, Shortened

from fedsim.arrays import IntArray, Vector
from fedsim.errors import FedsimError
from fedsim.learning import Dataset, EqualPartition, Executor, ExecutorChoice, TrainingJob, TrainingSetup
from fedsim.learning.executors.choice import GRAPHS, PROCESSES, STACKED
from fedsim.learning.models.flat_module import build_flat
from fedsim.streams import Streams

ON_A_GPU_ONLY = {"R18"}
PRECISIONS = ("float32", "bfloat16")
FAR_BEHIND = 2.0
"""One that takes so much longer than the loop in a round after the warm-up is not measured any longer."""
START_UP_S = 10.0
"""Seconds that a warm-up may take beyond training."""
ON_GPU = ("J1", "J2", "J3", "J4", "R18")
CLOCKS = {"wall": time.perf_counter, "processor": time.process_time}
CLOCK = ["wall"]


def now_s() -> float:
    return CLOCKS[CLOCK[0]]()


class Bare:
    """An executor that is handed cohort after cohort."""

    def __init__(
        self, job: Job, data: Dataset, rows: Sequence[IntArray], executor: str, device: str, precision: str
    ) -> None:
        setup = TrainingSetup(job.model, data, job.local, 0)
        self.executor: Executor = ExecutorChoice.of(executor, device, precision).build(setup)  # type: ignore[arg-type]
        self._initial: Vector = build_flat(job.model, data.shape, data.classes, 0).layout.initial
        self._job, self._rows, self._states, self._measured = job, rows, {}, 0

    def rounds(self, cohorts: Sequence[IntArray]) -> None:
        model, streams = self._initial, Streams(self._measured)
        self._measured += 1
        for number, cohort in enumerate(cohorts):
            jobs = [
                TrainingJob(
                    model,
                    self._rows[client],
                    1.0,
                    streams.generator("training", client, number),
                    self._states.get(client, {}),
                )
                for client in cohort.tolist()
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


def seconds(work: Callable[[], object]) -> float:
    gc.collect()
    began = now_s()
    work()
    return now_s() - began


def candidates(
    job: Job, data: Dataset, rows: Sequence[IntArray], device: str, chosen: argparse.Namespace
) -> dict[tuple[str, str], Bare]:
    """Return the executors that offer a device and a precision; the others are named in a line."""
    found, refused = {}, []
    for executor in chosen.executor or (("sequential", PROCESSES, STACKED) if device == "cpu" else (GRAPHS,)):
        for precision in chosen.precision or PRECISIONS:
            try:
                found[executor, precision] = Bare(job, data, rows, executor, device, precision)
            except FedsimError as error:
                refused.append(f"  {executor} {precision}: {error}")
    print("\n".join(refused), end="\n" if refused else "")
    return found


def measure(name: str, device: str, chosen: argparse.Namespace) -> None:
    job = JOBS[name]
    print(f"{name} on {device}: {job.what}")
    if isinstance(job.data, Shortened) and not job.data.found(chosen.data_dir):
        print(f"  {job.data.of} is not there: noise of the same shape instead")
    data = job.data.load(chosen.data_dir)
    rows = EqualPartition().assign(data.train_y, data.classes, job.clients, Streams(0))
    loop = PlainLoop(job, data, rows, device)
    bare = candidates(job, data, rows, device, chosen)
    rng = np.random.default_rng(0)
    count = max(1, job.rounds // 3) if chosen.quick else job.rounds
    cohorts = [rng.choice(job.clients, job.cohort, replace=False) for _ in range(count * job.longer)]
    loop.rounds(cohorts[:1])
    usual_s = seconds(lambda: loop.rounds(cohorts[:1]))
    spent: dict[object, list[float]] = {key: [] for key in ("loop", *bare)}
    far_behind = []
    for key, one in bare.items():
        took_s = seconds(lambda one=one: one.rounds(cohorts[:1]))
        if took_s < START_UP_S + 2 * FAR_BEHIND * usual_s:
            took_s = seconds(lambda one=one: one.rounds(cohorts[:1]))
        if took_s > FAR_BEHIND * usual_s:
            far_behind.append(key)
            spent[key].append(took_s * count * job.longer)
    for _ in range(1 if chosen.quick else chosen.repeats):
        spent["loop"].append(seconds(lambda: loop.rounds(cohorts[:count])) * job.longer)
        for key in [key for key in bare if key not in far_behind]:
            spent[key].append(seconds(lambda one=bare[key]: one.rounds(cohorts)))
    updates = count * job.longer * job.cohort
    report(job, device, updates, spent, list(bare))


def report(
    job: Job, device: str, updates: int, spent: dict[object, list[float]], bare: Sequence[tuple[str, str]]
) -> None:
    plain = spent["loop"]
    print(f"  {'plain loop':<18}{'float32':<10}{updates / statistics.median(plain):>11.1f}")
    for executor, precision in bare:
        took = spent[executor, precision]
        ratio = statistics.median(one / other for one, other in zip(plain, took, strict=False))
        line, goal = job.lines.get((device, precision), (None, None))
        told = "".join(f"{'-' if number is None else f'{number:g}':>7}" for number in (line, goal))
        verdict = "" if line is None else ("pass" if ratio >= line else "miss")
        verdict = "goal" if goal is not None and ratio >= goal else verdict
        print(
            f"  {executor:<18}{precision:<10}{updates / statistics.median(took):>11.1f}{ratio:>8.2f}{told}{verdict:>7}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--job", action="append", choices=JOBS, help="may be repeated; all by default")
    parser.add_argument("--executor", action="append", help="may be repeated; all built-in ones by default")
    parser.add_argument("--precision", action="append", choices=PRECISIONS, help="may be repeated; both by default")
    parser.add_argument("--device", action="append", help="may be repeated; cpu, and cuda where there is one")
    parser.add_argument("--repeats", type=int, default=5, help="turns of each candidate")
    parser.add_argument("--quick", action="store_true", help="one short turn")
    parser.add_argument("--clock", choices=CLOCKS, default="wall", help="processor: of this process alone")
    parser.add_argument("--data-dir", help="where CIFAR-10 lies (default: $FEDSIM_DATA)")
    chosen = parser.parse_args()
    CLOCK[:] = [chosen.clock]
    print(f"torch {torch.__version__}, {os.cpu_count()} cores, {torch.get_num_threads()} threads in the plain loop")
    print(f"  {'executor':<18}{'precision':<10}{'updates/s':>11}{'ratio':>8}{'line':>7}{'goal':>7}")
    with tempfile.TemporaryDirectory() as folder:
        os.environ["FEDSIM_CACHE"] = folder
        for device in chosen.device or ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]:
            usual = [name for name in JOBS if (name in ON_GPU if device != "cpu" else name not in ON_A_GPU_ONLY)]
            for name in chosen.job or usual:
                measure(name, device, chosen)


if __name__ == "__main__":
    main()
