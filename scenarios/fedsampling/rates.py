"""Which method is best, if each has the rate that is best for it on a validation set, as in the paper.

    python scenarios/fedsampling/rates.py [--experiment fig3|fig5] [--scale 0.1] [--seeds N] [--methods NAME ...]

The last 10,000 training samples are the validation set. Local steps have each of four rates, steps of an adaptive
server each of three. Every method is then run with its rate on all training samples, and judged on the test set. A
tenth of the rounds of Fig. 3 takes five minutes of a processor for a method with 1,000 clients a round.
"""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from fedsampling_experiments import LABELS, scenario_of
from paper_runs.command import in_words, options
from paper_runs.runs import scaled
from paper_runs.tables import markdown, with_deviation

from fedsim import sweep
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
        x, y = found.train_x, found.train_y
        held_x, held_y = x[-HELD_OUT:], y[-HELD_OUT:]
        return replace(found, train_x=x[:-HELD_OUT], train_y=y[:-HELD_OUT], test_x=held_x, test_y=held_y)


def main() -> None:
    asked = options(
        __doc__,
        experiment=["fig3", "fig5"],
        scale=1.0,
        seeds=1,
        methods=dict.fromkeys(RATES, True),
        executor="auto",
        data_dir=None,
        store=None,
        out=Path("runs/fedsampling_rates"),
    ).parse_args()
    rows = []
    for method in asked.methods:
        path, rates = RATES[method]
        base = scaled(scenario_of(asked.experiment, method, "all", 0), asked.scale)
        found = []
        for part in ("validation", "test"):
            study = sweep(
                base.replace({"learning.data": WithValidation()}) if part == "validation" else base,
                {path: list(rates)},
                seeds=asked.seeds,
                out=asked.out / f"{asked.experiment}-{method}-{part}",
                jobs=1,
                store=asked.store,
                data_dir=asked.data_dir,
                executor=asked.executor,
            )
            if study.failures:
                raise SystemExit(f"{method}: {study.failures}")
            accuracy = {key: 100.0 * study[key].column("evaluations", "accuracy")[-LAST:].mean() for key in study}
            found.append([[accuracy[arm, seed] for seed in study.study.seeds] for arm in study.study.arms])
            if part == "validation":
                means = np.nan_to_num([np.mean(of) for of in found[0]])
                tried = ", ".join(f"{rate:g}: {one:.2f}" for rate, one in zip(rates, means, strict=True))
                rates = (rates[int(np.argmax(means))],)
        rows.append([LABELS[method], tried, f"{rates[0]:g}", with_deviation(found[1][0], 2)])
        print(" | ".join(rows[-1]), flush=True)
    print(markdown(("method", "validation accuracy % by rate", "chosen", "test accuracy %"), rows))


if __name__ == "__main__":
    in_words(main)
