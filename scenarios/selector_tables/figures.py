"""Figures of the tables: accuracy over seconds, and the paired differences."""

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
from matplotlib import colormaps
from matplotlib.figure import Figure
from study_scripts import panels

from selector_tables.methods import FACTS
from selector_tables.outcomes import TARGET
from selector_tables.rows import Row

NAMED: Final = 6
"""Curves with a colour and a name, at each end of the order."""
_COLOURS: Final = {"wins": "tab:blue", "loses": "tab:red", "level": "0.45"}


def accuracy_figure(curves: Mapping[str, Mapping[str, np.ndarray]], rows: Sequence[Row]) -> Figure:
    """Return mean accuracy over ``time_s``, a panel for each table; the first, the last and uniform have names."""
    figure, axes_of = panels(len(curves), (6.0 * len(curves), 5.5), ylim=(0.0, 1.0))
    for axes, (table, of) in zip(axes_of, curves.items(), strict=True):
        others = [row["method"] for row in rows if row["table"] == table and not row["method"].startswith("uniform")]
        first, last = others[:NAMED], others[NAMED:][-NAMED:]
        for name in others[NAMED:-NAMED]:
            axes.plot(of["time_s"], of[name], color="0.85", lw=0.7, zorder=1)
        for at, name in enumerate([*first, *last]):
            dash = "-" if name in first else "--"
            axes.plot(of["time_s"], of[name], dash, color=colormaps["tab20"](at), lw=1.4, label=name)
        if "uniform" in of:
            axes.plot(of["time_s"], of["uniform"], color="black", lw=2.2, label="uniform")
        axes.axhline(TARGET, color="0.6", lw=0.8, ls=":")
        axes.legend(fontsize=6.5, frameon=False, loc="lower right", ncols=2)
        axes.set_title(FACTS["tables"][table]["title"], fontsize=10)
    figure.supxlabel("simulated seconds")
    figure.supylabel("test accuracy, mean over seeds")
    return figure


def difference_figure(rows: Sequence[Row]) -> Figure:
    """Return each method's seconds to the target beyond those of the row beside, with 95 % intervals."""
    tables = list(dict.fromkeys(row["table"] for row in rows))
    compared = [[row for row in rows if row["table"] == table and row["verdict"]] for table in tables]
    figure, axes_of = panels(len(tables), (5.2 * len(tables), 1.5 + 0.155 * max(map(len, compared))))
    for axes, table, of in zip(axes_of, tables, compared, strict=True):
        order = sorted(of, key=lambda row: float(row["later_s"]), reverse=True)
        for y, row in enumerate(order):
            colour = _COLOURS[row["verdict"]]
            axes.errorbar(row["later_s"], y, xerr=row["later_half"], fmt="o", ms=3, lw=1, color=colour)
        axes.axvline(0.0, color="black", lw=0.8)
        axes.set_yticks(range(len(order)), [row["method"] for row in order], fontsize=6)
        axes.set_title(FACTS["tables"][table]["title"], fontsize=10)
        axes.set_ylim(-1, len(order))
    figure.supxlabel("seconds to 80 % later than uniform, paired by seed, with 95 % intervals")
    return figure
