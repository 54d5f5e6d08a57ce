"""What would another deadline have done? Time to accuracy over deadlines, on one crowd.

    python scenarios/deadline_whatif.py [--rounds N] [--out FOLDER]

All runs have one seed: the same places, fading and speeds. Differences between rows come from the deadline alone.
"""

import argparse
from pathlib import Path

from matplotlib.figure import Figure

from fedsim import Scenario, draw, sweep
from fedsim.history import save

DEADLINES_S = (0.3, 0.4, 0.5, 0.6, 0.75, 1.0, 1.5, 2.0)
TARGETS = ("80%", "90%", "95%")  # test accuracies
FORMS = {"mean_round_s": ".3f", "delivered_share": ".1%", "final_accuracy": ".1%"}
SELECTOR = {"kind": "uniform", "cohort": 10}  # no learning of who is fast: the deadline does all the work


def main() -> None:
    parser = argparse.ArgumentParser(description="Time to accuracy over deadlines.")
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--out", type=Path, default=Path("runs/deadline_whatif"))
    arguments = parser.parse_args()
    base = Scenario.load(Path(__file__).with_name("quickstart.toml"))
    base = base.replace({"selector": SELECTOR, "rounds.count": arguments.rounds})
    rules = {f"{deadline_s:g} s": {"rounds.policy.deadline_s": deadline_s} for deadline_s in DEADLINES_S}
    forms = FORMS | {f"time_to_{target}": ".1f" for target in TARGETS}
    variants = {**rules, "wait for all": {"rounds.policy": "wait-for-all"}}
    study = sweep(base, variants=variants, seeds=[base.seed], metrics=list(forms), out=arguments.out)
    print("".join(f"{title:>17}" for title in ("deadline", *forms)))
    for key in study:
        values = [(study.values(name)[key], form) for name, form in forms.items()]
        cells = [format(one.value, form) if one.reached else "never" for one, form in values]
        print("".join(f"{cell:>17}" for cell in (key[0], *cells)))
    draw([study[key] for key in study], smoothing=5, labels=list(variants), out=arguments.out / "accuracy.png")
    times = {target: list(study.values(f"time_to_{target}").values()) for target in TARGETS}
    figure = bars({target: [one.value * one.reached for one in of] for target, of in times.items()}, list(variants))
    save(figure, arguments.out / "time_to_accuracy.png")
    print(f"\n{arguments.out / 'accuracy.png'}\n{arguments.out / 'time_to_accuracy.png'}")


def bars(times_s: dict[str, list[float]], names: list[str]) -> Figure:
    """Return bars of the time to each target for each deadline; a target never reached has no bar."""
    figure = Figure(figsize=(7.0, 4.0), dpi=150, layout="constrained")
    axes = figure.add_subplot(xlabel="deadline", ylabel="simulated seconds to test accuracy, first reached")
    for i, (target, of) in enumerate(times_s.items()):
        drawn = axes.bar([place + 0.27 * i for place in range(len(of))], of, 0.27, label=target)
        axes.bar_label(drawn, ["" if time_s else "never" for time_s in of], rotation=90, fontsize=7)
    axes.set_xticks([place + 0.27 for place in range(len(names))], names)
    axes.legend(title="accuracy", frameon=False)
    return figure


if __name__ == "__main__":
    main()
