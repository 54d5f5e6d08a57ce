"""Time and memory of each aggregation, as ratios to the weighted mean: ``python tests/benchmarks/aggregations.py``.

Updates are random; the time is that of a processor, the median of several turns; the memory is what NumPy holds at most
while updates come one after the other, over the size of one update. Then the step of each server optimiser, as a ratio
to that of FedAvg.
"""

import argparse
import time
import tracemalloc
from statistics import median

import numpy as np

from fedsim.learning import FedAvg
from fedsim.learning.aggregation.combining import incoming
from fedsim.learning.aggregation.contracts import AGGREGATIONS
from fedsim.learning.server_optimizers.contracts import SERVER_OPTIMIZERS

OPTIONS = {"krum": {"byzantine": 2}, "multi-krum": {"byzantine": 2, "averaged": 5}}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--updates", type=int, default=20)
    parser.add_argument("--parameters", type=int, default=170_474)
    parser.add_argument("--repeats", type=int, default=7)
    args = parser.parse_args()
    turns: dict[str, list[float]] = {kind: [] for kind in AGGREGATIONS.builtin}
    for _ in range(args.repeats):
        for kind, found in turns.items():
            found.append(seconds(kind, args.updates, args.parameters))
    base = median(turns["mean"])
    print(f"{args.updates} updates of {args.parameters} numbers; the mean takes {1e3 * base:.1f} ms")
    for kind, found in turns.items():
        print(
            f"{kind:14s} {median(found) / base:6.1f} times the time, {held(kind, args.updates):5.1f} updates in memory"
        )
    steps: dict[str, list[float]] = {kind: [] for kind in SERVER_OPTIMIZERS.builtin}
    for _ in range(args.repeats):
        for kind, found in steps.items():
            found.append(seconds_of_step(kind, args.parameters))
    base = median(steps["fedavg"])
    print(f"a step of {args.parameters} numbers; fedavg takes {1e3 * base:.1f} ms")
    for kind, found in steps.items():
        print(f"{kind:14s} {median(found) / base:6.1f} times the time")


def seconds_of_step(kind: str, size: int, count: int = 5) -> float:
    """Return the processor time of one step of a server optimiser, the mean of several."""
    rule = SERVER_OPTIMIZERS.make({"kind": kind})
    (update,), model, state = drawn(1, size), np.zeros(size, np.float32), rule.init(size)
    begun = time.process_time()
    for _ in range(count):
        model, state = rule.step(model, update, state)
    return (time.process_time() - begun) / count


def seconds(kind: str, count: int, size: int) -> float:
    updates = drawn(count, size)
    begun = time.process_time()
    aggregate(kind, updates, size)
    return time.process_time() - begun


def held(kind: str, count: int, size: int = 200_000) -> float:
    model = np.zeros(size, np.float32)
    tracemalloc.start()
    taken = incoming(AGGREGATIONS.make({"kind": kind, **OPTIONS.get(kind, {})}), FedAvg(), model, count)
    rng = np.random.default_rng(0)
    for _ in range(count):
        taken.add(rng.standard_normal(size, dtype=np.float32), 1 / count)
    taken.stepped(size, model, None)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return most / model.nbytes


def aggregate(kind: str, updates: list[np.ndarray], size: int) -> None:
    model = np.zeros(size, np.float32)
    taken = incoming(AGGREGATIONS.make({"kind": kind, **OPTIONS.get(kind, {})}), FedAvg(), model, len(updates))
    for update in updates:
        taken.add(update, 1 / len(updates))
    taken.stepped(size, model, None)


def drawn(count: int, size: int) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return list(rng.standard_normal((count, size), dtype=np.float32))


if __name__ == "__main__":
    main()
