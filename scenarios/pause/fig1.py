"""Draw PAUSE's Fig. 1: the generalisation reward (8) against the share of rounds, for different beta.

    python scenarios/pause/fig1.py [--out FOLDER]

K = 30 users with equal data, of whom m = 5 are selected. The values are those of the selector, which meets a user that
took part in each number of 1,000 rounds. It takes four seconds.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np
from crowds import Crowd
from paper_runs.command import in_words, options
from study_scripts import panels, written

from fedsim.arrays import FloatArray
from fedsim.selectors import Pause

CLIENTS, COHORT, ROUNDS = 30, 5, 1000


def curve(beta: float) -> tuple[FloatArray, FloatArray]:
    """Return shares of rounds, and g_k after so many."""
    with Crowd(CLIENTS).testbed() as testbed:
        view = replace(testbed.view(), round=ROUNDS + 1)
    counts, selector = np.arange(0, ROUNDS + 1, 10), Pause(COHORT, beta=beta)
    views = (replace(view, participations=np.full(CLIENTS, count)) for count in counts)
    return counts / ROUNDS, np.array([selector.generalisation(one)[0] for one in views])


def main() -> None:
    asked = options(__doc__, out=Path("runs/pause")).parse_args()
    share = "share of rounds in which the user took part"
    figure, (axes,) = panels(xlabel=share, ylabel="generalisation reward g")
    for beta in (1.0, 1.5, 2.0, 3.0):
        axes.plot(*curve(beta), label=f"beta {beta:g}")
    axes.axvline(COHORT / CLIENTS, color="grey", linestyle=":", linewidth=1.0, label="m / K, reward 0")
    axes.legend()
    written({"fig1.png": figure}, asked.out)


if __name__ == "__main__":
    in_words(main)
