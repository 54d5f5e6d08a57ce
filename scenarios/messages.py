"""What do smaller updates buy? Accuracy against seconds, and against bits sent up, for six ways to send an update.

    python scenarios/messages.py [--rounds N] [--seeds N] [--out FOLDER]

runs the study of `messages.toml`, and prints medians over the seeds.
"""

import numpy as np
from study_scripts import panels, run, seconds_to, sizes, study_of, table, told, written

from fedsim import History

TARGETS = (0.8, 0.9, 0.95)


def sent_mbit(history: History) -> np.ndarray:
    """Return what all clients have sent up at each evaluation."""
    up_bits = history.column("participations", "uplink_bits")
    by_round = np.bincount(history.column("participations", "round"), up_bits)
    return np.asarray(np.cumsum(by_round)[history.column("evaluations", "round")] / 1e6)


def mbit_to(history: History, target: float) -> float:
    first = np.flatnonzero(history.column("evaluations", "accuracy") >= target)
    return float(sent_mbit(history)[first[0]]) if first.size else np.inf


def main() -> None:
    given = sizes(__file__, __doc__, rounds=200, seeds=3)
    runs = run(study_of(__file__, given.seeds, rounds__count=given.rounds), given.out, executor="stacked")
    rows = []
    for way, of in runs.items():
        rounds_s = np.median([one.column("rounds", "duration_s").mean() for one in of])
        final = np.median([one.column("evaluations", "accuracy")[-10:].mean() for one in of])
        to = [
            told(float(np.median([at(one, target) for one in of])))
            for at in (seconds_to, mbit_to)
            for target in TARGETS
        ]
        bits = of[0].column("participations", "uplink_bits").max()
        rows.append([way, f"{bits:,.0f}", f"{rounds_s:.2f}", f"{final:.1%}", *to])
    heads = [f"{what} to {target:.0%}" for what in ("s", "Mbit") for target in TARGETS]
    table(["updates", "bits of an update", "mean round s", "accuracy", *heads], rows)

    figure, (left, right) = panels(2, (9.0, 3.8), xscale="log", ylabel="test accuracy")
    for way, (one, *_) in runs.items():
        accuracy = one.column("evaluations", "accuracy")
        left.plot(one.column("evaluations", "time_s"), accuracy, label=way, linewidth=1.2)
        right.plot(sent_mbit(one), accuracy, linewidth=1.2)
    left.set_xlabel("simulated time (s)")
    right.set_xlabel("sent up by all clients (Mbit)")
    figure.legend(loc="outside upper center", ncols=len(runs), frameon=False, fontsize=8)
    written({"messages.png": figure}, given.out)


if __name__ == "__main__":
    main()
