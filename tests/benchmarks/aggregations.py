"""Time and memory of each aggregation, as ratios to the weighted mean: ``python tests/benchmarks/aggregations.py``.

Updates are random; the time is that of a processor, the median of several turns; the memory is what NumPy holds at most
while updates come one after the other, over the size of one update. Then the step of each server optimiser, as a ratio
to that of FedAvg.
"""

import argparse
import tracemalloc
from statistics import median

import numpy as np
from crowds import seconds

from fedsim.learning import FedAvg
from fedsim.learning.aggregation.combining import incoming
from fedsim.learning.aggregation.contracts import AGGREGATIONS
from fedsim.learning.server_optimizers.contracts import SERVER_OPTIMIZERS

OPTIONS = {"krum": {"byzantine": 2}, "multi-krum": {"byzantine": 2, "averaged": 5}}
HELD, STEPS = 200_000, 5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--updates", type=int, default=20)
    parser.add_argument("--parameters", type=int, default=170_474)
    parser.add_argument("--repeats", type=int, default=7)
    args = parser.parse_args()
    ours, base = medians(AGGREGATIONS.builtin, "mean", args.repeats, aggregate, drawn(args.updates, args.parameters))
    print(f"{args.updates} updates of {args.parameters} numbers; the mean takes {1e3 * base:.1f} ms")
    for kind, took_s in ours.items():
        print(f"{kind:14s} {took_s / base:6.1f} times the time, {held(kind, args.updates):5.1f} updates in memory")
    (update,) = drawn(1, args.parameters)
    ours, base = medians(SERVER_OPTIMIZERS.builtin, "fedavg", args.repeats, step, update)
    print(f"a step of {args.parameters} numbers; fedavg takes {1e3 * base / STEPS:.1f} ms")
    for kind, took_s in ours.items():
        print(f"{kind:14s} {took_s / base:6.1f} times the time")


def medians(kinds, of, repeats, work, given) -> tuple[dict[str, float], float]:
    """Return the median of the processor times of each kind, taken in turn, and that of the kind to compare with."""
    turns = [[seconds(work, kind, given) for kind in kinds] for _ in range(repeats)]
    found = dict(zip(kinds, map(median, zip(*turns, strict=True)), strict=True))
    return found, found[of]


def step(kind: str, update: np.ndarray) -> None:
    rule = SERVER_OPTIMIZERS.make({"kind": kind})
    model, state = np.zeros(update.size, np.float32), rule.init(update.size)
    for _ in range(STEPS):
        model, state = rule.step(model, update, state)


def taking(kind: str, model: np.ndarray, count: int):
    return incoming(AGGREGATIONS.make({"kind": kind, **OPTIONS.get(kind, {})}), FedAvg(), model, count)


def aggregate(kind: str, updates: np.ndarray) -> None:
    model = np.zeros(updates.shape[1], np.float32)
    taken = taking(kind, model, len(updates))
    for update in updates:
        taken.add(update, 1 / len(updates))
    taken.stepped(model.size, model, None)


def held(kind: str, count: int) -> float:
    model, rng = np.zeros(HELD, np.float32), np.random.default_rng(0)
    tracemalloc.start()
    taken = taking(kind, model, count)
    for _ in range(count):
        taken.add(rng.standard_normal(HELD, dtype=np.float32), 1 / count)
    taken.stepped(HELD, model, None)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return most / model.nbytes


def drawn(count: int, size: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal((count, size), dtype=np.float32)


if __name__ == "__main__":
    main()
