"""Which selectors find the clients that deliver? A deadline that half of a crowd of FedScale-like phones meets.

    python scenarios/half_deliver.py [--clients N] [--cohort N] [--rounds N] [--seeds N] [--out FOLDER]

runs the study of `half_deliver.toml` in 2 minutes. The deadline is the median duration of a participation, measured in
a first round of all clients of each seed. A client's duration varies little from round to round: about half of the
crowd never delivers, which the server does not know beforehand.
"""

from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
from study_scripts import Column, command, last_accuracy, run_by_seed, study_of, summary, with_deadline

from fedsim import History


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


def main(
    clients: int = 150, cohort: int = 10, rounds: int = 60, seeds: int = 5, out: Path = Path("runs/half_deliver")
) -> None:
    study = study_of(__file__, seeds, crowd__clients=clients, rounds__count=rounds, selector__cohort=cohort)
    runs = run_by_seed(study.seeds, lambda seed: replace(study, base=with_deadline(study.base, 0.5, seed)), out)
    summary(runs, COLUMNS)


if __name__ == "__main__":
    command(main, __doc__)
