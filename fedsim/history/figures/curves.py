"""Figures of one or more runs: accuracy, loss, leakage or round duration, against seconds or rounds."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, get_args

import numpy as np

from fedsim.arrays import FloatArray
from fedsim.errors import RunError
from fedsim.history.analyses.gaps import Models
from fedsim.history.analyses.targets import reaching
from fedsim.history.figures.writing import add_legend, as_it_is, look_of, new_figure, save
from fedsim.history.tables import Goal, Tables, X, Y
from fedsim.units import in_seconds

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

X_LABELS: Final[dict[str, str]] = {"time": "simulated time (s)", "round": "round"}
Y_LABELS: Final[dict[str, str]] = {
    "accuracy": "test accuracy",
    "loss": "test loss",
    "leakage": "largest leakage of a client (epsilon)",
    "mean_leakage": "mean leakage of the clients (epsilon)",
    "duration": "round duration (s)",
    "energy": "energy of all clients so far (J)",
}
_SUMS: Final = ("leakage", "mean_leakage", "energy")
_NUMBERED: Final = 3
"""Runs at whose marks the seconds stand."""


def draw(
    histories: Sequence[Tables],
    x: X = "time",
    y: Y | str = "accuracy",
    *,
    smoothing: int | None = None,
    labels: Sequence[str] | None = None,
    out: str | Path | None = None,
) -> "Figure":
    """Return one figure with a curve for each run; of accuracies with the target, and where each run first reaches it.

    Parameters
    ----------
    histories : runs with their tables
    x : ``"time"`` or ``"round"``
    y : ``"accuracy"``, ``"loss"``, ``"leakage"``, ``"mean_leakage"``, ``"duration"``, ``"energy"``, or a metric by name
    smoothing : window of the causal mean, 1 for none; that of the runs' scenarios (`results.smoothing`) by default. A
        leakage or energy is never smoothed
    labels : names of the curves; the runs' names by default
    out : file to write, in the format of its ending

    Raises
    ------
    RunError
        If x or y is no quantity of a history, or no run has any value of it.

    Examples
    --------
    >>> from fedsim import Scenario, simulate
    >>> scenario = Scenario.load("scenarios/pause/fig2_cifar_iid_small.toml")
    >>> scenario = scenario.replace({"rounds.count": 2, "learning": "none"})
    >>> figure = draw([simulate(scenario)], "round", "duration", out="durations.png")
    >>> figure.axes[0].get_xlabel()
    'round'
    """
    metrics = dict.fromkeys(name for history in histories for name in history.metrics)
    for name, value, allowed in (("x", x, get_args(X)), ("y", y, dict.fromkeys([*get_args(Y), *metrics]))):
        if value not in allowed:
            raise RunError(f"{name}: {value!r} cannot be drawn; allowed: {', '.join(allowed)}")
    figure = new_figure()
    axes = figure.add_subplot()
    names = [history.name for history in histories] if labels is None else list(labels)
    if not histories or len(names) != len(histories):
        raise RunError(f"{len(histories)} runs and {len(names)} labels cannot be drawn; allowed: a label for each run")
    window = window_of(histories, y, smoothing)
    lines: list[Line2D] = []
    known = 0
    for i, (history, label) in enumerate(zip(histories, names, strict=True)):
        abscissa, ordinate = curve_of(history, x, y, window)
        points = int(np.count_nonzero(~np.isnan(ordinate)))
        known += points
        # A line through one point has no length.
        style = _style(history, y) | ({"marker": "."} if points == 1 else {})
        lines += axes.plot(abscissa, ordinate, label=label, linewidth=1.5, **look_of(i), **style)
    if not known:
        raise RunError(
            f"{', '.join(names)}: holds no {y} to draw; a run without learning has no evaluations, and one without "
            "privacy no mean leakage"
        )
    axes.set_xlabel(X_LABELS[x])
    as_it_is(axes.yaxis.label, label_of(y, window))
    axes.set_xlim(left=0)
    axes.grid(visible=True, alpha=0.3)
    _mark_target(axes, histories, x, y, lines)
    if len(names) == 1:
        as_it_is(axes.set_title(""), names[0])
    else:
        add_legend(axes, lines, names)
    save(figure, out)
    return figure


def curve_of(history: Tables, x: X, y: str, window: int) -> tuple[FloatArray, FloatArray]:
    """Return a quantity as it is drawn: a sum begins with 0, as nothing has leaked before the first round."""
    abscissa, ordinate = history.curve(x, y, window)
    if y in _SUMS and abscissa.size and abscissa[0] > 0 and not np.isnan(ordinate[0]):
        abscissa, ordinate = np.insert(abscissa, 0, 0.0), np.insert(ordinate, 0, 0.0)
    return abscissa, ordinate


def label_of(y: str, window: int) -> str:
    """Return what stands at the ordinate: the quantity, and of how many values its means are."""
    mean = f", mean of the last {window} {'rounds' if y == 'duration' else 'evaluations'}"
    return Y_LABELS.get(y, f"test {y}") + mean * (window > 1)


def window_of(histories: Sequence[Tables], y: str, smoothing: int | None) -> int:
    """Return the window of the means: what is asked for, or that of the runs' scenarios where they have one."""
    if y in _SUMS:
        return 1
    if smoothing is not None:
        return smoothing
    own = {history.smoothing for history in histories}
    return own.pop() if len(own) == 1 and y != "duration" else 1


def _style(history: Tables, y: str) -> dict[str, Any]:
    """Return how a curve is drawn: in steps where a value holds until the next, with points where some are unknown."""
    if y == "duration":
        return {}
    if y in _SUMS or (Models.of(history).row[1:] >= 0).all():
        return {"drawstyle": "steps-post"}
    return {"marker": ".", "markersize": 5}


def _mark_target(axes: "Axes", histories: Sequence[Tables], x: X, y: str, lines: "Sequence[Line2D]") -> None:
    """Draw the target of the quantity that all runs have, and where each one first reaches it."""
    goals = {Goal(y, one.target_accuracy) if y == "accuracy" else one.goal for one in histories}
    goal = goals.pop()
    if goals or goal.metric != y:
        return
    axes.axhline(goal.value, color="grey", linestyle=":", linewidth=1.0, zorder=1)
    for i, (history, line) in enumerate(zip(histories, lines, strict=True)):
        good = reaching(history, **goal.asked)
        if not good.any():
            continue
        at = float(history.curve(x, y)[0][good.argmax()])
        said = f"{in_seconds(at, 4)} s" if x == "time" else f"round {at:g}"
        axes.scatter([at], [goal.value], s=25, color=line.get_color(), zorder=4)
        if len(histories) <= _NUMBERED:
            value = f"{100 * goal.value:g} %" if y == "accuracy" else f"{goal.value:g}"
            place = (6, -11 * (i + 1))
            note = axes.annotate("", (at, goal.value), place, textcoords="offset points", fontsize=8)
            as_it_is(note, f"{value} at {said}")
            note.set_color(line.get_color())
