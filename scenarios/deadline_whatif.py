"""What would another deadline have done? Time to accuracy over deadlines, on one crowd.

    python scenarios/deadline_whatif.py [--rounds N] [--out FOLDER]

All runs have one seed: the same places, fading and speeds. Differences between rows come from the deadline alone.
"""

from typing import Any

from study_scripts import HERE, panels, run, seconds_to, sizes, table, told, written

from fedsim import Scenario, Study, draw
from fedsim.studies.metrics import metric

DEADLINES_S = (0.3, 0.4, 0.5, 0.6, 0.75, 1.0, 1.5, 2.0)
TARGETS = (0.8, 0.9, 0.95)
FORMS = {"mean_round_s": ".3f", "delivered_share": ".1%", "final_accuracy": ".1%"}


def main() -> None:
    given = sizes(__file__, __doc__, rounds=200)
    # No selector that learns who is fast: the deadline does all the work.
    own = {"selector": {"kind": "uniform", "cohort": 10}, "rounds.count": given.rounds}
    base = Scenario.load(HERE / "quickstart.toml").replace(own)
    ways: dict[str, Any] = {f"{deadline_s:g} s": {"rounds.policy.deadline_s": deadline_s} for deadline_s in DEADLINES_S}
    ways["wait for all"] = {"rounds.policy": "wait-for-all"}
    runs = {name: one for name, (one,) in run(Study.of(base, variants=ways, seeds=1), given.out).items()}
    times_s = {name: [seconds_to(one, target) for target in TARGETS] for name, one in runs.items()}
    cells = {name: [format(metric(m).of(one).value, form) for m, form in FORMS.items()] for name, one in runs.items()}
    rows = [[name, *cells[name], *(told(at, ".1f") for at in times_s[name])] for name in runs]
    table(["deadline", *FORMS, *(f"time_to_{target:.0%}" for target in TARGETS)], rows)

    bars, (axes,) = panels(1, (7.0, 4.0), xlabel="deadline", ylabel="simulated seconds to test accuracy, first reached")
    for i, (target, of) in enumerate(zip(TARGETS, zip(*times_s.values(), strict=True), strict=True)):
        shown = [0.0 if told(at) == "never" else at for at in of]
        drawn = axes.bar([place + 0.27 * i for place in range(len(of))], shown, 0.27, label=f"{target:.0%}")
        axes.bar_label(drawn, ["" if at else "never" for at in shown], rotation=90, fontsize=7)
    axes.set_xticks([place + 0.27 for place in range(len(runs))], list(runs))
    axes.legend(frameon=False)
    written({"accuracy.png": draw(list(runs.values()), smoothing=5, labels=list(runs)), "times.png": bars}, given.out)


if __name__ == "__main__":
    main()
