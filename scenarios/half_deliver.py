"""Which selectors find the clients that deliver? A deadline that half of a crowd of FedScale-like phones meets.

    python scenarios/half_deliver.py [--clients N] [--cohort N] [--rounds N] [--seeds N] [--share S] [--selectors "A;B"]

runs the study of `half_deliver.toml`. The deadline is the median duration of a participation, measured in a first round
of all clients of each seed. A client's duration varies little from round to round: about half of the crowd never
delivers, which the server does not know beforehand.
"""

from dataclasses import replace
from functools import partial

import numpy as np
from study_scripts import Column, last_accuracy, run_by_seed, sizes, study_of, summary, with_deadline

from fedsim import History, Study
from fedsim.studies.study import Variant


def under(study: Study, share: float, names: list[str], seed: int) -> Study:
    """Return the study of one seed, under the deadline that a share of its crowd meets."""
    known = {one.name: one.values for one in study.variants}
    arms = tuple(Variant(name, known[name]) for name in names or known)
    return replace(study, base=with_deadline(study.base, share, seed), variants=arms, baseline=arms[0].name)


def empty(history: History) -> np.ndarray:
    return np.asarray(history.column("rounds", "delivered") == 0)


def of_reached(seconds: np.ndarray) -> float:
    return float(seconds[np.isfinite(seconds)].mean()) if np.isfinite(seconds).any() else np.inf


COLUMNS: dict[str, Column] = {
    "empty": (lambda one: empty(one).sum(), ".3g", np.mean),
    "late empty": (lambda one: empty(one)[one.rounds.num_rows // 3 :].sum(), ".3g", np.mean),
    "delivered": ("delivered_share", ".3g", np.mean),
    "accuracy": (partial(last_accuracy, evaluations=3), ".3g", np.mean),
    "to 80 % (s)": ("time_to_80%", ".3g", of_reached),
    "reached by seeds": ("time_to_80%", "g", lambda seconds: np.isfinite(seconds).sum()),
}


def main() -> None:
    given = sizes(__file__, __doc__, clients=150, cohort=10, rounds=60, seeds=5, share=0.5, selectors="")
    values = {"crowd__clients": given.clients, "rounds__count": given.rounds, "selector__cohort": given.cohort}
    study = study_of(__file__, given.seeds, **values)
    names = [one.strip() for one in given.selectors.split(";") if one]
    summary(run_by_seed(study.seeds, partial(under, study, given.share, names), given.out), COLUMNS)


if __name__ == "__main__":
    main()
