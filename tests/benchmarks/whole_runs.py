"""Whole runs by default beside a plain eager PyTorch loop that does the same work, start-up included.

    python tests/benchmarks/whole_runs.py [--job J1 ...] [--seconds 3] [--turns 3] [--executor auto] [--fast]

Loop and run take turns, each in a process of its own in which torch and fedsim are imported already, with what torch
imports at its first optimiser (its compiler, seconds that only the loop needs); the rounds are as many as the loop does
in the seconds asked for. Ratios are medians over the turns, of wall time and of processor time,
workers included. Not a test: it asserts nothing.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import time

import numpy as np
import torch
from training_jobs import JOBS, Job, PlainLoop

from fedsim import Scenario, simulate
from fedsim.learning import EqualPartition
from fedsim.streams import Streams

GOALS = {"J1": 2.5, "J2": 13.0, "J3": 1.9, "J4": 2.0}
CONSTANT = {"kind": "constant", "value_s": 1.0}


def loop(job: Job, rounds: int) -> None:
    data = job.data.load(None)
    rows = EqualPartition().assign(data.train_y, data.classes, job.clients, Streams(0))
    rng = np.random.default_rng(0)
    cohorts = [rng.choice(job.clients, job.cohort, replace=False) for _ in range(rounds)]
    PlainLoop(job, data, rows, "cpu").rounds(cohorts)


def scenario(job: Job, rounds: int) -> Scenario:
    local = job.local.model_dump(exclude_none=True)
    return Scenario(
        name="whole-run",
        seed=1,
        crowd={"clients": job.clients},
        learning={"data": job.data, "split": {"kind": "equal"}, "model": job.model, "local": local},
        network={"kind": "latency", "downlink": CONSTANT, "uplink": CONSTANT},
        devices={"compute": "zero"},
        rounds={"count": rounds},
        selector={"kind": "uniform", "cohort": job.cohort},
        results={"evaluate_every": rounds, "evaluate_start": False},
    )


def processor_s() -> float:
    return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


def measured(name: str, what: str, rounds: int, *, fast: bool) -> None:
    """Print wall and processor seconds of one run in this process."""
    torch.optim.SGD([torch.zeros(1, requires_grad=True)])
    began, used = time.perf_counter(), processor_s()
    if what == "loop":
        loop(JOBS[name], rounds)
    else:
        simulate(scenario(JOBS[name], rounds), store=False, executor=what, fast=fast)
    print(json.dumps([time.perf_counter() - began, processor_s() - used]))


def seconds(name: str, what: str, rounds: int, *, fast: bool = False) -> list[float]:
    command = [sys.executable, __file__, "--measure", name, what, str(rounds), *["--fast"] * fast]
    cached = {**os.environ, "PYTHONDONTWRITEBYTECODE": ""}  # from the second run on modules are compiled, as for a user
    found = subprocess.run(command, capture_output=True, text=True, check=False, env=cached)  # noqa: S603
    if found.returncode:
        raise SystemExit(found.stderr)
    return [float(one) for one in json.loads(found.stdout.splitlines()[-1])]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--job", action="append", choices=GOALS, help="may be repeated; all by default")
    parser.add_argument("--seconds", type=float, default=3.0, help="of the loop, about")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--executor", default="auto")
    parser.add_argument("--fast", action="store_true", help="let bits differ from run to run")
    parser.add_argument("--measure", nargs=3, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.measure:
        measured(chosen.measure[0], chosen.measure[1], int(chosen.measure[2]), fast=chosen.fast)
        return
    for name in chosen.job or GOALS:
        once, more = seconds(name, "loop", 1)[0], seconds(name, "loop", 3)[0]
        rounds = 1 + max(0, round((chosen.seconds - once) / max((more - once) / 2, 1e-3)))
        pairs = [
            (seconds(name, "loop", rounds), seconds(name, chosen.executor, rounds, fast=chosen.fast))
            for _ in range(chosen.turns)
        ]
        ratios = [[one[i] / other[i] for one, other in pairs] for i in (0, 1)]
        print(
            f"{name} {rounds} rounds: loop {statistics.median(one[0] for one, _ in pairs):.2f} s, "
            f"{chosen.executor} {statistics.median(one[0] for _, one in pairs):.2f} s; times faster: wall "
            f"{statistics.median(ratios[0]):.2f} ({min(ratios[0]):.2f} to {max(ratios[0]):.2f}), processor "
            f"{statistics.median(ratios[1]):.2f}; goal of wall {GOALS[name]:g}",
            flush=True,
        )


if __name__ == "__main__":
    main()
