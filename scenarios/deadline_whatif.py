"""What would another deadline have done? Time to accuracy over deadlines, on one crowd.

    python scenarios/deadline_whatif.py [--rounds N] [--out FOLDER]

All runs have one seed: the same places, fading and speeds. Differences between rows come from the deadline alone.
"""

import argparse
from pathlib import Path

from matplotlib.figure import Figure

from fedsim import History, Scenario, draw, simulate
from fedsim.history import save
from fedsim.results import summarise

DEADLINES_S = (0.3, 0.4, 0.5, 0.6, 0.75, 1.0, 1.5, 2.0)
TARGETS = (0.8, 0.9, 0.95)  # test accuracies
SMOOTHING = 5  # evaluations, of curves alone
SELECTOR = {"kind": "uniform", "cohort": 10}  # no learning of who is fast: the deadline does all the work
HERE = Path(__file__).parent


def main() -> None:
    parser = argparse.ArgumentParser(description="Time to accuracy over deadlines.")
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--out", type=Path, default=Path("runs/deadline_whatif"))
    arguments = parser.parse_args()

    base = Scenario.load(HERE / "quickstart.toml").replace({"selector": SELECTOR, "rounds.count": arguments.rounds})
    runs: dict[str, History] = {}
    for deadline_s in DEADLINES_S:
        runs[f"{deadline_s:g} s"] = simulate(base.replace({"rounds.policy.deadline_s": deadline_s}))
    runs["wait for all"] = simulate(base.replace({"rounds.policy": "wait-for-all"}))

    print_table(runs)
    draw(list(runs.values()), smoothing=SMOOTHING, labels=list(runs), out=arguments.out / "accuracy.png")
    save(bars(runs), arguments.out / "time_to_accuracy.png")
    print(f"\n{arguments.out / 'accuracy.png'}\n{arguments.out / 'time_to_accuracy.png'}")


def print_table(runs: dict[str, History]) -> None:
    header = ["deadline", "mean round (s)", "delivered", "final acc", *(f"s to {target:.0%}" for target in TARGETS)]
    print("".join(f"{title:>16}" for title in header))
    for label, history in runs.items():
        summary = summarise(history)
        times = [history.time_to_accuracy(target) for target in TARGETS]
        cells = [
            label,
            f"{summary['mean_round_s']:.3f}",
            f"{summary['delivered_share']:.1%}",
            f"{summary['final_accuracy']:.1%}",
            *("never" if time_s is None else f"{time_s:.1f}" for time_s in times),
        ]
        print("".join(f"{cell:>16}" for cell in cells))


def bars(runs: dict[str, History]) -> Figure:
    """Return bars of the time to each target for each deadline; a target never reached has no bar."""
    figure = Figure(figsize=(7.0, 4.0), dpi=150, layout="constrained")
    axes = figure.add_subplot()
    width = 0.8 / len(TARGETS)
    for i, target in enumerate(TARGETS):
        reached = [history.time_to_accuracy(target) for history in runs.values()]
        places = [place + i * width for place in range(len(runs))]
        axes.bar(places, [time_s or 0.0 for time_s in reached], width, label=f"{target:.0%}")
        for place, time_s in zip(places, reached, strict=True):
            if time_s is None:
                axes.text(place, 0, "never", rotation=90, ha="center", va="bottom", fontsize=7)
    axes.set_xticks([place + width * (len(TARGETS) - 1) / 2 for place in range(len(runs))], list(runs))
    axes.set_xlabel("deadline")
    axes.set_ylabel("simulated seconds to test accuracy, first reached")
    axes.legend(title="accuracy", frameon=False)
    return figure


if __name__ == "__main__":
    main()
