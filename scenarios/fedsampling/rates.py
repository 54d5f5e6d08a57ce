"""Which method of Fig. 3 is best, if each has the rate that is best for it on a validation set, as in the paper.

    python scenarios/fedsampling/rates.py [--scale 0.1] [--seeds N] [--methods NAME ...] [--data-dir DIR] [--store DIR]

The last 10,000 training samples are the validation set. Local steps have each of four rates, steps of an adaptive
server each of three. Every method is then run with its rate on all training samples, and judged on the test set. A
tenth of the rounds takes about five minutes of a processor for seed 0, all rounds ten times as long.
"""

import argparse
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from fedsampling_experiments import LABELS, scenario_of
from paper_runs.tables import markdown, with_deviation

from fedsim import Scenario, sweep
from fedsim.history import History
from fedsim.learning.data.datasets import Dataset
from fedsim.learning.data.mnist import FashionMNIST

LOCAL = ("learning.local.learning_rate", (0.05, 0.12, 0.3, 0.8))
SERVER = ("learning.server.learning_rate", (0.003, 0.01, 0.03))
RATES = {
    **dict.fromkeys(("centralization", "fedavg", "fedavg-weighted", "fixed-ratio", "fedsampling"), LOCAL),
    **dict.fromkeys(("fedyogi", "fedadam"), SERVER),
}
HELD_OUT = 10_000
LAST = 2
"""Evaluations, each ten rounds, whose mean counts."""


class WithValidation(FashionMNIST):
    """The training samples without the last ones, which stand in the place of the test set."""

    def load(self, data_dir: Path | None = None) -> Dataset:
        found = super().load(data_dir)
        kept, held = slice(None, -HELD_OUT), slice(-HELD_OUT, None)
        return replace(
            found,
            train_x=found.train_x[kept],
            train_y=found.train_y[kept],
            test_x=found.train_x[held],
            test_y=found.train_y[held],
        )


def accuracy(history: History) -> float:
    """Return the mean of the last evaluations in per cent."""
    return 100.0 * float(history.column("evaluations", "accuracy")[-LAST:].mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--methods", nargs="+", choices=RATES, default=list(RATES), metavar="NAME")
    parser.add_argument("--executor", default="stacked")
    parser.add_argument("--out", type=Path, default=Path("runs/fedsampling_rates"))
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--store", type=Path)
    asked = parser.parse_args()
    options: dict[str, Any] = {"jobs": 1, "data_dir": asked.data_dir, "store": asked.store, "executor": asked.executor}

    def runs(base: Scenario, name: str, path: str, rates: tuple[float, ...]) -> list[float]:
        base = base.replace({"rounds.count": max(10 * LAST, round(asked.scale * base.rounds.count))})
        study = sweep(base, {path: list(rates)}, seeds=asked.seeds, name=name, out=asked.out / name, **options)
        if study.failures:
            raise SystemExit(f"{name}: {study.failures}")
        found = {
            variant: [accuracy(study[variant, seed]) for seed in study.study.seeds] for variant in study.study.arms
        }
        return [one for of in found.values() for one in ([float(np.mean(of))] if len(rates) > 1 else of)]

    rows = []
    for method in asked.methods:
        path, rates = RATES[method]
        base = scenario_of("fig3", method, "all", 0)
        on_validation = runs(base.replace({"learning.data": WithValidation()}), f"{method}-validation", path, rates)
        best = int(np.argmax(np.nan_to_num(on_validation)))
        test = runs(base, f"{method}-test", path, rates[best : best + 1])
        tried = ", ".join(f"{rate:g}: {one:.2f}" for rate, one in zip(rates, on_validation, strict=True))
        rows.append([LABELS[method], tried, f"{rates[best]:g}", with_deviation(test, 2)])
        print(" | ".join(rows[-1]), flush=True)
    print(markdown(("method", "validation accuracy % by rate", "chosen", "test accuracy %"), rows))


if __name__ == "__main__":
    main()
