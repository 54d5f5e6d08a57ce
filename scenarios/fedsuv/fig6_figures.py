"""The figures of FedSUV's section 6.3: Fig. 6 as maps of the clients, and both regrets over the rounds."""

from collections.abc import Mapping, Sequence

import numpy as np
from fig6_crowd import Crowd
from fig6_measures import LOW_VALIDITY
from fig6_rounds import Run
from matplotlib.colors import PowerNorm
from matplotlib.figure import Figure
from study_scripts import panels


def heat_maps(found: Mapping[str, Run], crowd: Crowd) -> Figure:
    """Return Fig. 6: rounds as a candidate above, times selected below; a mark is a client, a row has one scale."""
    figure = Figure(figsize=(11.0, 6.6), dpi=150, layout="constrained")
    places = figure.subplots(2, len(found), sharex=True, sharey=True, squeeze=False)
    # Few are selected very often: the root of the counts keeps the others visible.
    shown = {
        "rounds as a candidate": ([run.left.sum(axis=0) for run in found.values()], 1.0),
        "times selected (root scale)": ([run.selections for run in found.values()], 0.5),
    }
    for row, (title, (counts, power)) in zip(places, shown.items(), strict=True):
        norm = PowerNorm(power, 0, max(int(np.max(counts)), 1))
        for axes, name, values in zip(row, found, counts, strict=True):
            order = np.argsort(values, kind="stable")
            at, hue = (crowd.validity[order], crowd.utility[order]), values[order]
            marks = axes.scatter(*at, c=hue, s=210.0**2 / crowd.validity.size, marker="s", linewidths=0, norm=norm)
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
        axes.set(xlim=(0, None), ylim=(0, None))
    both[1].legend(frameon=False)
    return figure
