"""The mean of each variant over its seeds, and the paired differences from the baseline, as steps with bands."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
from scipy import stats

from fedsim.arrays import FloatArray
from fedsim.errors import RunError
from fedsim.history import History, save
from fedsim.history.figures.curves import curve_of, label_of, window_of
from fedsim.history.figures.writing import add_legend, as_it_is, look_of, new_figure
from fedsim.studies.metrics import spent
from fedsim.units import counted

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_X: Final = {
    "time": ("s", "simulated time (s)"),
    "round": ("rounds", "round"),
    "bits": ("bits", "bits sent and received"),
    "joules": ("J", "energy of the clients (J)"),
}
Curve = tuple[FloatArray, FloatArray]


class Band(NamedTuple):
    """A mean over runs with its interval, at ascending abscissas, shape (n,) each."""

    x: FloatArray
    mean: FloatArray
    low: FloatArray
    high: FloatArray


def draw_bands(
    runs: Mapping[str, Mapping[int, History]],
    x: str,
    y: str | None,
    baseline: str,
    *,
    level: float = 0.95,
    smoothing: int | None = None,
    out: str | Path | None = None,
) -> "Figure":
    if x not in _X:
        raise RunError(f"x: {x!r} cannot be drawn; allowed: {', '.join(_X)}")
    histories = [history for of in runs.values() for history in of.values()]
    y = y or ("accuracy" if any(history.evaluations.num_rows for history in histories) else "duration")
    window = window_of(histories, y, smoothing)
    curves = {name: _curves(of, x, y, window) for name, of in runs.items()}
    curves = {name: of for name, of in curves.items() if of}
    if not curves:
        why = "a run without batteries has no joules" if x == "joules" else "a run without learning has no evaluations"
        raise RunError(f"{', '.join(runs)}: holds no {y} to draw; {why}")
    first = curves.get(baseline, {})
    differences = {
        name: [one for seed in of if seed in first and (one := difference(first[seed], of[seed]))[0].size]
        for name, of in curves.items()
        if name != baseline
    }
    paired = any(len(pairs) > 1 for pairs in differences.values())
    figure = new_figure(height=5.6 if paired else 4.0)
    panels = figure.subplots(1 + paired, 1, sharex=True, squeeze=False, height_ratios=[3, 2][: 1 + paired])[:, 0]
    upper = panels[0]
    looks = {name: look_of(i) for i, name in enumerate(curves)}
    for name, of in curves.items():
        _step(upper, band(list(of.values()), level), looks[name], f"{name} ({counted(len(of), 'seed')})")
    as_it_is(upper.yaxis.label, f"{label_of(y, window)}, mean")
    for lower in panels[1:]:
        lower.axhline(0.0, color="grey", linewidth=0.8)
        for name, pairs in differences.items():
            if len(pairs) > 1:
                _step(lower, band(pairs, level), looks[name], f"{len(pairs)} pairs")
        as_it_is(lower.yaxis.label, f"less {baseline}")
    panels[-1].set_xlabel(_X[x][1])
    for panel in panels:
        panel.grid(visible=True, alpha=0.3)
        panel.set_xlim(left=0)
    title = f"bands: {100 * level:g}%" if any(len(of) > 1 for of in curves.values()) else None
    add_legend(upper, *upper.get_legend_handles_labels(), fontsize=8, title=title)
    save(figure, out)
    return figure


def _curves(of: Mapping[int, History], x: str, y: str, window: int) -> dict[int, Curve]:
    curves = {}
    for seed, history in of.items():
        at, values = curve_of(history, "round" if x == "round" else "time", y, window)
        at = at if x == "round" else spent(history, _X[x][0], at)
        known = ~np.isnan(values) & ~np.isnan(at)
        if known.any():
            curves[seed] = at[known], values[known]
    return curves


def at_steps(curve: Curve, x: FloatArray) -> FloatArray:
    """Return a curve at some abscissas: a value holds until the next."""
    at, values = curve
    return np.asarray(values[np.searchsorted(at, x, side="right") - 1])


def difference(one: Curve, other: Curve) -> Curve:
    """Return the second curve less the first, where both are known, at the steps of either."""
    begin, end = max(one[0][0], other[0][0]), min(one[0][-1], other[0][-1])
    x = np.unique(np.concatenate([one[0], other[0]]))
    x = x[(x >= begin) & (x <= end)]
    return x, at_steps(other, x) - at_steps(one, x)


def band(curves: Sequence[Curve], level: float) -> Band:
    """Return the mean of curves with Student's interval, up to where the first of them ends."""
    begin, end = max(at[0] for at, _ in curves), min(at[-1] for at, _ in curves)
    x = np.unique(np.concatenate([[begin, end], *(at for at, _ in curves)]))
    x = x[(x >= begin) & (x <= end)]
    values = np.array([at_steps(curve, x) for curve in curves])
    half = np.full(x.size, np.nan)
    if len(curves) > 1:
        half = stats.t.ppf((1 + level) / 2, len(curves) - 1) * stats.sem(values, axis=0)
    mean = values.mean(axis=0)
    return Band(x, mean, mean - half, mean + half)


def _step(axes: "Axes", of: Band, look: Mapping[str, Any], label: str) -> None:
    axes.step(of.x, of.mean, where="post", label=label, linewidth=1.5, marker="." if of.x.size == 1 else None, **look)
    axes.fill_between(of.x, of.low, of.high, step="post", alpha=0.2, linewidth=0, color=look["color"])
