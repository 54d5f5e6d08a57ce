"""What helps against stragglers? Accuracy against seconds under eight rules for closing a round, on one crowd.

    python scenarios/straggler_whatif.py [--seconds S] [--seeds N] [--out FOLDER]

runs the study of `straggler_whatif.toml`; times to a target are medians over the seeds, other figures means.
"""

import numpy as np
from study_scripts import Column, panels, run, sizes, study_of, summary, times_to, written

from fedsim import History
from fedsim.history.accounting import spent

SMOOTHED_S = 2.0  # simulated seconds that means of accuracy reach back, in curves and at the end


def smoothed(history: History) -> tuple[np.ndarray, np.ndarray]:
    """Return seconds, and the mean of the accuracies of as many evaluations as there are in the time of means."""
    lasted_s = float(history.column("rounds", "end_s")[-1])
    number = round(SMOOTHED_S * np.count_nonzero(history.column("evaluations", "round")) / lasted_s)
    return history.curve(smoothing=max(1, number))


COLUMNS: dict[str, Column] = {
    "mean round s": ("mean_round_s", ".3f", np.mean),
    "acc, last 2 s": (lambda one: smoothed(one)[1][-1], ".1%", np.mean),
    "time wasted": (lambda one: spent(one).wasted_time, ".1%", np.mean),
    "bits wasted": (lambda one: spent(one).wasted_bits, ".1%", np.mean),
    **times_to((0.8, 0.9), ".1f"),
}


def main() -> None:
    given = sizes(__file__, __doc__, seconds=120.0, seeds=3)
    runs = run(study_of(__file__, given.seeds, rounds__until_s=given.seconds), given.out)
    summary(runs, COLUMNS, "rule")
    drawn, (axes, bars) = panels(2, (12.0, 4.5))
    left = np.zeros(len(runs))
    for rule, (one, *_) in runs.items():
        axes.plot(*smoothed(one), label=rule)
    for at, fate in enumerate(next(iter(runs.values()))[0].by_fate()["fate"].to_pylist()):
        share = np.mean([[one.by_fate()["time_share"][at].as_py() for one in of] for of in runs.values()], axis=1)
        if share.any():
            bars.barh(list(runs), share, left=left, label=fate)
        left += share
    axes.set(xlabel="simulated time (s)", ylabel=f"test accuracy, mean over {SMOOTHED_S:g} s")
    bars.set(xlabel="share of the clients' time", xlim=(0, 1), ylim=(len(runs) - 0.5, -0.5))
    for panel in (axes, bars):
        panel.legend(fontsize=8)
    written({"stragglers.png": drawn}, given.out)


if __name__ == "__main__":
    main()
