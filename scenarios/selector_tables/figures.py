"""Figures of the tables: accuracy over seconds, and the paired differences."""

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
from matplotlib import colormaps
from matplotlib.figure import Figure

from selector_tables.methods import FACTS
from selector_tables.outcomes import POINTS, TARGET
from selector_tables.tables import Row

NAMED: Final = 6
"""Curves with a colour and a name, at each end of the order."""
_COLOURS: Final = {"wins": "tab:blue", "loses": "tab:red", "level": "0.45"}
Curves = Mapping[str, np.ndarray]
"""Mean accuracy at `POINTS` instants, by method."""


def accuracy_figure(
    curves: Mapping[str, Curves], seconds: Mapping[str, float], rows: Mapping[str, Sequence[Row]]
) -> Figure:
    """Return mean accuracy over seconds, a panel for each table; the first, the last and uniform have names."""
    figure = Figure(figsize=(6.0 * len(rows), 5.5), dpi=100, layout="constrained")
    for axes, (table, of) in zip(np.atleast_1d(figure.subplots(1, len(rows), sharey=True)), rows.items(), strict=True):
        order = [row.method for row in of if not row.method.startswith("uniform")]
        colours = dict(zip(dict.fromkeys([*order[:NAMED], *order[-NAMED:]]), colormaps["tab20"].colors, strict=False))
        time_s = np.linspace(0.0, seconds[table], POINTS)
        for at, name in enumerate(order):
            named = {
                "lw": 1.4,
                "ls": "--" if at >= len(order) - NAMED else "-",
                "label": name,
                "color": colours.get(name),
            }
            axes.plot(
                time_s, curves[table][name], **(named if name in colours else {"color": "0.85", "lw": 0.7, "zorder": 1})
            )
        if "uniform" in curves[table]:
            axes.plot(time_s, curves[table]["uniform"], color="black", lw=2.2, label="uniform")
        axes.axhline(TARGET, color="0.6", lw=0.8, ls=":")
        axes.legend(fontsize=6.5, frameon=False, loc="lower right", ncols=2)
        axes.set_title(FACTS["tables"][table]["title"], fontsize=10)
    figure.supxlabel("simulated seconds")
    figure.supylabel("test accuracy, mean over seeds")
    return figure


def difference_figure(rows: Mapping[str, Sequence[Row]]) -> Figure:
    """Return each method's seconds to the target beyond those of the row beside, with 95 % intervals."""
    compared = {table: [row for row in of if row.verdict] for table, of in rows.items()}
    most = max((len(of) for of in compared.values()), default=1)
    figure = Figure(figsize=(5.2 * len(rows), 1.5 + 0.155 * most), dpi=100, layout="constrained")
    for axes, (table, of) in zip(np.atleast_1d(figure.subplots(1, len(rows))), compared.items(), strict=True):
        order = sorted(of, key=lambda row: row.later_s[0], reverse=True)
        for y, row in enumerate(order):
            mean, half = row.later_s
            axes.errorbar(mean, y, xerr=half, fmt="o", ms=3, lw=1, color=_COLOURS[row.verdict])
        axes.axvline(0.0, color="black", lw=0.8)
        axes.set_yticks(range(len(order)), [row.method for row in order], fontsize=6)
        axes.set_title(FACTS["tables"][table]["title"], fontsize=10)
        axes.set_ylim(-1, len(order))
        axes.grid(axis="x", lw=0.3)
    figure.supxlabel("seconds to 80 % later than uniform, paired by seed, with 95 % intervals")
    return figure
