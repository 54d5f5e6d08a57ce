"""Which method is best, if each has the rate that is best for it on a validation set, as in the paper.

    python scenarios/fedsampling/rates.py [--experiment fig3|fig5] [--scale 0.1] [--seeds N] [--methods NAME ...]
        [--set PATH=VALUE ...]

The last 10,000 training samples are the validation set. Local steps have each of four rates, steps of an adaptive
server each of three. Every method is then run with its rate on all training samples, and judged on the test set. A
tenth of the rounds of Fig. 3 takes five minutes of a processor for a method with 1,000 clients a round; a method with
100, four minutes a seed for all rounds.
"""

from argparse import Namespace
from collections.abc import Sequence

import numpy as np
from fedsampling_experiments import FILE, LABELS, base_of, values_of
from paper_runs.command import in_words, of_runs, publish
from paper_runs.runs import scaled
from paper_runs.tables import markdown, with_deviation
from study_scripts import run

from fedsim import Study
from fedsim.arrays import FloatArray

LAST = 2  # evaluations, each ten rounds, whose mean counts
RATES = {method: (of["path"], of["values"]) for of in FILE["rates"] for method in of["methods"]}


def accuracies(asked: Namespace, method: str, rates: Sequence[float], part: str) -> FloatArray:
    """Return the accuracies in per cent at the end by rate and seed, on the validation or the test set."""
    base = scaled(base_of(asked.experiment, values=dict(asked.set)), asked.scale)
    base = base.replace(values_of(asked.experiment, method, "all", base))
    if part == "validation":
        base = base.replace({"learning.data.kind": "validation_set:WithValidation"})
    study = Study.of(base, grid={RATES[method][0]: rates}, seeds=asked.seeds)
    where = {"store": asked.store, "data_dir": asked.data_dir, "executor": asked.executor, "jobs": asked.workers}
    runs = run(study, asked.out / f"{asked.experiment}-{method}-{part}", **where)
    return 100.0 * np.array(
        [[one.column("evaluations", "accuracy")[-LAST:].mean() for one in of] for of in runs.values()]
    )


def main() -> None:
    methods = {method: LABELS[method] for method in RATES}
    asked, rows = of_runs(__doc__, "runs/fedsampling_rates", methods, experiment=["fig3", "fig5"]).parse_args(), []
    for method in asked.methods:
        rates = RATES[method][1]
        means = np.nan_to_num(accuracies(asked, method, rates, "validation").mean(axis=1))
        chosen = rates[int(np.argmax(means))]
        tried = ", ".join(f"{rate:g}: {one:.2f}" for rate, one in zip(rates, means, strict=True))
        (found,) = accuracies(asked, method, [chosen], "test").tolist()
        rows.append([LABELS[method], tried, f"{chosen:g}", with_deviation(found, 2)])
        print(" | ".join(rows[-1]), flush=True)
    table = markdown(("method", "validation accuracy % by rate", "chosen", "test accuracy %"), rows)
    publish("scenarios/fedsampling/rates.py", [table], asked)


if __name__ == "__main__":
    in_words(main)
