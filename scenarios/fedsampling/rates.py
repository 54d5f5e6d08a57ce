"""Which method is best, if each has the rate that is best for it on a validation set, as in the paper.

    python scenarios/fedsampling/rates.py [--experiment fig3|fig5] [--scale 0.1] [--seeds N] [--methods NAME ...]
        [--set PATH=VALUE ...]

The last 10,000 training samples are the validation set. Local steps have each of four rates, steps of an adaptive
server each of three. Every method is then run with its rate on all training samples, and judged on the test set. A
tenth of the rounds of Fig. 3 takes five minutes of a processor for a method with 1,000 clients a round.
"""

from argparse import Namespace
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from fedsampling_experiments import LABELS, RATES, base_of, values_of
from paper_runs.command import in_words, of_runs, publish
from paper_runs.runs import scaled
from paper_runs.tables import markdown, with_deviation
from study_scripts import run

from fedsim import Study
from fedsim.arrays import FloatArray
from fedsim.learning.data.datasets import Dataset
from fedsim.learning.data.images.mnist import FashionMNIST

HELD_OUT = 10_000
LAST = 2
"""Evaluations, each ten rounds, whose mean counts."""


class WithValidation(FashionMNIST):
    """The training samples without the last ones, which stand in the place of the test set."""

    def load(self, data_dir: Path | None = None) -> Dataset:
        whole = FashionMNIST().load(data_dir)
        x, y = whole.train_x, whole.train_y
        first = self.limited(replace(whole, train_x=x[:-HELD_OUT], train_y=y[:-HELD_OUT]))
        return replace(first, test_x=x[-HELD_OUT:], test_y=y[-HELD_OUT:])


def accuracies(asked: Namespace, method: str, rates: Sequence[float], part: str) -> FloatArray:
    """Return the accuracies in per cent at the end by rate and seed, on the validation or the test set."""
    base = scaled(base_of(asked.experiment, values=dict(asked.set)), asked.scale)
    base = base.replace(values_of(asked.experiment, method, "all", base))
    if part == "validation":
        base = base.replace({"learning.data": WithValidation(train_limit=base.learning.data.train_limit)})
    study = Study.of(base, grid={RATES[method][0]: rates}, seeds=asked.seeds)
    where = {"store": asked.store, "data_dir": asked.data_dir, "executor": asked.executor, "jobs": asked.workers}
    runs = run(study, asked.out / f"{asked.experiment}-{method}-{part}", **where)
    ends = [[one.column("evaluations", "accuracy")[-LAST:].mean() for one in of] for of in runs.values()]
    return 100.0 * np.array(ends)


def main() -> None:
    methods = {method: LABELS[method] for method in RATES}
    asked = of_runs(__doc__, "runs/fedsampling_rates", methods, experiment=["fig3", "fig5"]).parse_args()
    rows = []
    for method in asked.methods:
        rates = RATES[method][1]
        means = np.nan_to_num(accuracies(asked, method, rates, "validation").mean(axis=1))
        chosen = rates[int(np.argmax(means))]
        tried = ", ".join(f"{rate:g}: {one:.2f}" for rate, one in zip(rates, means, strict=True))
        (found,) = accuracies(asked, method, [chosen], "test").tolist()
        rows.append([LABELS[method], tried, f"{chosen:g}", with_deviation(found, 2)])
        print(" | ".join(rows[-1]), flush=True)
    heads = ("method", "validation accuracy % by rate", "chosen", "test accuracy %")
    publish("scenarios/fedsampling/rates.py", [markdown(heads, rows)], asked)


if __name__ == "__main__":
    in_words(main)
