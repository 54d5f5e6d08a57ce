"""Figures of one or more runs: accuracy, loss, leakage or round duration, against seconds or rounds."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, get_args

import numpy as np

from fedsim.errors import RunError
from fedsim.history.figures.writing import COLOURS, DOTS_PER_INCH, SIZE_INCHES, STYLES, save
from fedsim.history.tables import Tables, X, Y

if TYPE_CHECKING:
    from matplotlib.figure import Figure

X_LABELS: Final[dict[str, str]] = {"time": "simulated time (s)", "round": "round"}
Y_LABELS: Final[dict[str, str]] = {
    "accuracy": "test accuracy",
    "loss": "test loss",
    "leakage": "largest leakage of a client (epsilon)",
    "mean_leakage": "mean leakage of the clients (epsilon)",
    "duration": "round duration (s)",
}


def draw(
    histories: Sequence[Tables],
    x: X = "time",
    y: Y | str = "accuracy",
    *,
    smoothing: int = 1,
    labels: Sequence[str] | None = None,
    out: str | Path | None = None,
) -> "Figure":
    """Return one figure with a curve for each run.

    Parameters
    ----------
    histories : runs with their tables
    x : ``"time"`` or ``"round"``
    y : ``"accuracy"``, ``"loss"``, ``"leakage"``, ``"mean_leakage"``, ``"duration"``, or a metric of the task by name
    smoothing : window of the causal mean; a leakage is a step curve and is never smoothed
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
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    metrics = dict.fromkeys(name for history in histories for name in history.metrics)
    for name, value, allowed in (("x", x, get_args(X)), ("y", y, dict.fromkeys([*get_args(Y), *metrics]))):
        if value not in allowed:
            raise RunError(f"{name}: {value!r} cannot be drawn; allowed: {', '.join(allowed)}")
    figure = Figure(figsize=SIZE_INCHES, dpi=DOTS_PER_INCH, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    names = [history.name for history in histories] if labels is None else labels
    steps = y in ("leakage", "mean_leakage")
    window = 1 if steps else smoothing
    drawn = 0
    for i, (history, label) in enumerate(zip(histories, names, strict=True)):
        abscissa, ordinate = history.curve(x, y, window)
        drawn += int(np.count_nonzero(~np.isnan(ordinate)))
        if steps and abscissa.size and abscissa[0] > 0:
            # Nothing has leaked before the first round.
            abscissa, ordinate = np.insert(abscissa, 0, 0.0), np.insert(ordinate, 0, 0.0)
        axes.plot(
            abscissa,
            ordinate,
            label=label,
            color=COLOURS[i % len(COLOURS)],
            linestyle=STYLES[i // len(COLOURS) % len(STYLES)],
            drawstyle="steps-post" if steps else "default",
            linewidth=1.5,
        )
    if not drawn:
        raise RunError(
            f"{', '.join(names)}: holds no {y} to draw; a run without learning has no evaluations, and one without "
            "privacy no mean leakage"
        )
    axes.set_xlabel(X_LABELS[x])
    axes.set_ylabel(Y_LABELS.get(y, f"test {y}") + (f", mean of {window}" if window > 1 else ""))
    axes.set_xlim(left=0)
    axes.grid(visible=True, alpha=0.3)
    axes.legend(frameon=False)
    if out is not None:
        save(figure, out)
    return figure
