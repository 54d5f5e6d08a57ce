"""What do narrower models buy under a deadline that half of the crowd meets? Plain training, HeteroFL and FedRolex.

    python scenarios/widths.py [--rounds N] [--seeds N] [--out FOLDER]

takes a minute. The deadline is the median over the clients of the mean duration of a participation with the whole
model. A slow client is late in every round with plain training, and trains the largest width that fits with HeteroFL
and FedRolex. A last row gives plain training four times the deadline.
"""

from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
from study_scripts import Column, command, last_accuracy, run_by_seed, study_of, summary, times_to, written

from fedsim import History, Study, draw
from fedsim.simulation import Simulation
from fedsim.studies.study import Variant


def with_deadline(study: Study, seed: int) -> Study:
    """Return the study of one seed under the deadline of its crowd, with a row that has four times as much."""
    crowd = Simulation(study.base.replace({"seed": seed}), store=False).context.clients
    median_s = float(np.median(crowd.expected_s.sum(axis=0)))
    base = study.base.replace({"rounds.policy": {"kind": "deadline", "deadline_s": median_s}})
    longer = {**study.variants[0].values, "rounds.policy.deadline_s": 4 * median_s}
    return replace(study, base=base, variants=(*study.variants, Variant("plain, four times the deadline", longer)))


def delivered(history: History, name: str) -> np.ndarray:
    arrived = history.column("participations", "outcome") == "delivered"
    return np.asarray(history.column("participations", name)[arrived])


COLUMNS: dict[str, Column] = {
    "delivered": ("delivered_share", ".0%"),
    "clients that did": (lambda one: np.unique(delivered(one, "client")).size / one.scenario.crowd.clients, ".0%"),
    "mean bits": (lambda one: delivered(one, "uplink_bits").mean() if delivered(one, "client").size else 0.0, ",.0f"),
    "accuracy": (last_accuracy, ".1%"),
    **times_to((0.7, 0.8, 0.9)),
}


def main(rounds: int = 200, seeds: int = 3, out: Path = Path("runs/widths")) -> None:
    study = study_of(__file__, seeds, rounds__count=rounds)
    runs = run_by_seed(study.seeds, partial(with_deadline, study), out, executor="stacked")
    summary(runs, COLUMNS, "way")
    written({"widths.png": draw([of[0] for of in runs.values()], smoothing=1, labels=list(runs))}, out)


if __name__ == "__main__":
    command(main, __doc__)
