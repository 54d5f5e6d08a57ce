"""Which clients does FedSUV select, and which does it give up? Section 6.3 and Fig. 6 of its paper.

    python scenarios/fedsuv/fig6_selection.py [--layout grid|random] [--features mixed|means] [--seeds N]
        [--coverage-runs N] [--coverage-rounds N] [--rounds N] [--clients N] [--out FOLDER]

2,500 clients whose expected validity and utility are uniform on the unit square, 400 rounds of 20 clients, no training.
The paper does not say what the clients' features are in this study. By default they are six noisy attributes, as many
as its section 4.2 names; ``--features means`` gives the two expectations instead, so that both models hold exactly. Two
regrets are summed over the rounds: the area of section 5.3, and the objective (OPT).
A seed takes half a minute of a processor, and the coverage of Theorem 5.3 (100 runs for each of five deltas) 15 more.
"""

from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
from fig6_world import Crowd, Run, make_crowd, play
from matplotlib.colors import PowerNorm
from matplotlib.figure import Figure
from paper_runs.command import in_words, options
from paper_runs.tables import markdown
from study_scripts import panels, written

from fedsim.arrays import FloatArray
from fedsim.selectors import FedSuv, Oort, OortFedScale, Selector, Uniform

COHORT = 20  # section 6.1
FIRST_ROUNDS = 100  # section 6.3 counts "the first 100 rounds"
LOW_VALIDITY = 0.4  # clients below it "participated only in approximately 30 rounds"
NEAR = 0.2  # distance to a Pareto-optimal client within which a selection counts as near the front
DELTAS = (0.9, 0.5, 0.2, 0.1, 0.05)
SELECTORS: dict[str, Callable[[], Selector]] = {
    # Utilities lie in [0, 1], as the proof of Theorem 5.5 assumes.
    "FedSUV": lambda: FedSuv(COHORT, utility_scale=1.0),
    "FedSUV, GP-BUCB": lambda: FedSuv(COHORT, utility_scale=1.0, batch="hallucinated"),
    "Oort": lambda: Oort(COHORT),
    "Oort, FedScale": lambda: OortFedScale(COHORT),
    "uniform": lambda: Uniform(COHORT),
}
HEADS = (
    *("method", "first 100, v<0.4", "rounds in X, v<0.4", f"picks within {NEAR:g}", "delivered", "mean v u"),
    *("regret (5.3)", "regret (OPT)"),
)


def main() -> None:
    asked = options(
        __doc__,
        clients=2500,
        rounds=400,
        seeds=10,
        coverage_runs=100,
        coverage_rounds=100,
        layout=["grid", "random"],
        features=["mixed", "means"],
        out=Path("runs/fedsuv_fig6"),
    ).parse_args()
    crowds = [make_crowd(asked.clients, asked.layout, asked.features, seed) for seed in range(asked.seeds)]
    found = {
        name: [play(make(), crowd, asked.rounds, seed) for seed, crowd in enumerate(crowds)]
        for name, make in SELECTORS.items()
    }
    rows = []
    for name, runs in found.items():
        values = np.array([measures(run, crowd) for run, crowd in zip(runs, crowds, strict=True)])
        spread = zip(values.mean(0), values.std(0), strict=True)
        rows.append([name, *(f"{mean:.3g} +- {std:.2g}" for mean, std in spread)])
    print(markdown(HEADS, rows))
    print(f"Theorem 5.3 over {asked.coverage_runs} runs: share in which every rectangle holds in every round\n")
    rows = [[f"{delta:g}", f"{1 - delta:.3f}", f"{coverage(delta, asked):.3f}"] for delta in DELTAS]
    print(markdown(("delta", "promised", "measured"), rows))
    maps = heat_maps({name: found[name][0] for name in ("FedSUV", "Oort", "uniform")}, crowds[0])
    written({"heatmaps.png": maps, "regret.png": regrets(found, crowds)}, asked.out)


def measures(run: Run, crowd: Crowd) -> list[float]:
    """Return one row of the table, in the order of its titles."""
    low, picks = crowd.validity < LOW_VALIDITY, selections(run) / run.chosen.size
    return [
        float(run.left[:FIRST_ROUNDS, low].sum(axis=0).mean()),
        float(run.left[:, low].sum(axis=0).mean()),
        float(picks[crowd.distance_to_front() <= NEAR].sum()),
        float(run.delivered.mean()),
        float(picks @ (crowd.validity * crowd.utility)),
        *crowd.regrets(run.chosen).sum(axis=1).tolist(),
    ]


def selections(run: Run) -> FloatArray:
    """Return how often each client was selected."""
    return np.bincount(run.chosen.ravel(), minlength=run.left.shape[1]).astype(np.float64)


def coverage(delta: float, asked: Namespace) -> float:
    """Return the share of runs in which all rectangles hold in all rounds.

    The features are the paper's x here, without scaling: v = theta . x holds with theta = (1, 0). Clients that do not
    deliver add no utility, as the intervals (5) are those of a delivered update's utility.
    """
    held = []
    for seed in range(1000, 1000 + asked.coverage_runs):
        crowd = make_crowd(asked.clients, asked.layout, "means", seed)
        selector = FedSuv(COHORT, delta=delta, utility_scale=1.0, scaling="none", undelivered="nothing", fit="none")
        held.append(play(selector, crowd, asked.coverage_rounds, seed).holds)
    return float(np.mean(held))


def heat_maps(found: Mapping[str, Run], crowd: Crowd) -> Figure:
    """Return Fig. 6: rounds as a candidate above, times selected below; a mark is a client, a row has one scale."""
    figure = Figure(figsize=(11.0, 6.6), dpi=150, layout="constrained")
    places = figure.subplots(2, len(found), sharex=True, sharey=True, squeeze=False)
    size = 210.0**2 / crowd.validity.size
    # Few are selected very often: the root of the counts keeps the others visible.
    shown = {
        "rounds as a candidate": ([run.left.sum(axis=0) for run in found.values()], 1.0),
        "times selected (root scale)": ([selections(run) for run in found.values()], 0.5),
    }
    for row, (title, (counts, power)) in zip(places, shown.items(), strict=True):
        norm = PowerNorm(power, 0, max(int(np.max(counts)), 1))
        for axes, name, values in zip(row, found, counts, strict=True):
            order = np.argsort(values, kind="stable")
            at, hue = (crowd.validity[order], crowd.utility[order]), values[order]
            marks = axes.scatter(*at, c=hue, s=size, marker="s", linewidths=0, norm=norm)
            axes.axvline(LOW_VALIDITY, color="tab:red", linewidth=0.8, linestyle="--")
            axes.set(xlim=(0, 1), ylim=(0, 1), aspect="equal")
            axes.set_title(name, fontsize=9)
        row[0].set_ylabel("expected utility")
        figure.colorbar(marks, ax=row, shrink=0.85, label=title)
    for axes in places[1]:
        axes.set_xlabel("expected validity")
    return figure


def regrets(found: Mapping[str, Sequence[Run]], crowds: Sequence[Crowd]) -> Figure:
    """Return both summed regrets against rounds, means over the seeds with their ranges."""
    figure, both = panels(2, (10.0, 4.0), xlabel="round")
    both[0].set_ylabel("hypervolume regret (section 5.3), summed")
    both[1].set_ylabel("regret of validity times utility (OPT), summed")
    for name, runs in found.items():
        summed = np.cumsum([crowd.regrets(run.chosen) for run, crowd in zip(runs, crowds, strict=True)], axis=2)
        number = np.arange(1, summed.shape[2] + 1)
        for axes, own in zip(both, summed.transpose(1, 0, 2), strict=True):
            (line,) = axes.plot(number, own.mean(0), label=name, linewidth=1.5)
            axes.fill_between(number, own.min(0), own.max(0), color=line.get_color(), alpha=0.2, linewidth=0)
    for axes in both:
        axes.set_xlim(left=0)
        axes.set_ylim(bottom=0)
    both[1].legend(frameon=False)
    return figure


if __name__ == "__main__":
    in_words(main)
