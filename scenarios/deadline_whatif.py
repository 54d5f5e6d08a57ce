"""What would another deadline have done? Time to accuracy over deadlines, on one crowd.

    python scenarios/deadline_whatif.py [--rounds N] [--out FOLDER]

All runs have one seed: the same places, fading and speeds. Differences between rows come from the deadline alone.
"""

import argparse
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from fedsim import Scenario, draw, sweep
from fedsim.history import save
from fedsim.studies.metrics import Value

DEADLINES_S = (0.3, 0.4, 0.5, 0.6, 0.75, 1.0, 1.5, 2.0)
TIMES = ("time_to_80%", "time_to_90%", "time_to_95%")
FORMS = {"mean_round_s": ".3f", "delivered_share": ".1%", "final_accuracy": ".1%", **dict.fromkeys(TIMES, ".1f")}
SELECTOR = {"kind": "uniform", "cohort": 10}  # no learning of who is fast: the deadline does all the work


def main() -> None:
    parser = argparse.ArgumentParser(description="Time to accuracy over deadlines.")
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--out", type=Path, default=Path("runs/deadline_whatif"))
    arguments = parser.parse_args()
    base = Scenario.load(Path(__file__).with_name("quickstart.toml"))
    base = base.replace({"selector": SELECTOR, "rounds.count": arguments.rounds})
    variants: dict[str, dict[str, Any]] = {
        f"{deadline_s:g} s": {"rounds.policy.deadline_s": deadline_s} for deadline_s in DEADLINES_S
    }
    variants["wait for all"] = {"rounds.policy": "wait-for-all"}
    study = sweep(base, variants=variants, seeds=[base.seed], metrics=list(FORMS), out=arguments.out)
    print(f"{study.folder}\n" + "".join(f"{title:>17}" for title in ("deadline", *FORMS)))
    for key in study:
        found = {name: study.values(name)[key] for name in FORMS}
        cells = [format(one.value, FORMS[name]) if one.reached else "never" for name, one in found.items()]
        print("".join(f"{cell:>17}" for cell in (key[0], *cells)))
    draw([study[key] for key in study], smoothing=5, labels=list(variants), out=arguments.out / "accuracy.png")
    save(bars({name: study.values(name).values() for name in TIMES}, list(variants)), arguments.out / "times.png")


def bars(times: Mapping[str, Collection[Value]], names: list[str]) -> Figure:
    """Return bars of the time to each target for each deadline; a target never reached has no bar."""
    figure = Figure(figsize=(7.0, 4.0), dpi=150, layout="constrained")
    axes = figure.add_subplot(xlabel="deadline", ylabel="simulated seconds to test accuracy, first reached")
    for i, (name, of) in enumerate(times.items()):
        seconds = [one.value * one.reached for one in of]
        drawn = axes.bar([place + 0.27 * i for place in range(len(of))], seconds, 0.27, label=name)
        axes.bar_label(drawn, ["" if one.reached else "never" for one in of], rotation=90, fontsize=7)
    axes.set_xticks([place + 0.27 for place in range(len(names))], names)
    axes.legend(frameon=False)
    return figure


if __name__ == "__main__":
    main()
