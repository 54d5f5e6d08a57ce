"""Figures of one or more runs: accuracy, loss, leakage or round duration, against seconds or rounds.

matplotlib is loaded when a figure is drawn.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, get_args

from fedsim.errors import RunError
from fedsim.history.tables import Tables, X, Y
from fedsim.inputs.files import check_path
from fedsim.whole_files import replace_file

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Figure", "draw", "save"]

X_LABELS: Final[dict[str, str]] = {"time": "simulated time (s)", "round": "round"}
Y_LABELS: Final[dict[str, str]] = {
    "accuracy": "test accuracy",
    "loss": "test loss",
    "leakage": "largest leakage of a client (epsilon)",
    "duration": "round duration (s)",
}
_SIZE_INCHES: Final = (6.4, 4.0)
_DOTS_PER_INCH: Final = 150
# Okabe and Ito's palette: colour-blind readers can tell the curves apart, also in grey.
_COLOURS: Final = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
_STYLES: Final = ("-", "--", "-.", ":")


def draw(
    histories: Sequence[Tables],
    x: X = "time",
    y: Y = "accuracy",
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
    y : ``"accuracy"``, ``"loss"``, ``"leakage"`` or ``"duration"``
    smoothing : window of the causal mean; leakage is a step curve and is never smoothed
    labels : names of the curves; the runs' names by default
    out : file to write, in the format of its ending

    Raises
    ------
    RunError
        If x or y is no quantity of a history, or no run has any value of it.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    for name, value, allowed in (("x", x, get_args(X)), ("y", y, get_args(Y))):
        if value not in allowed:
            raise RunError(f"{name}: {value!r} cannot be drawn; allowed: {', '.join(allowed)}")
    figure = Figure(figsize=_SIZE_INCHES, dpi=_DOTS_PER_INCH, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    names = [history.name for history in histories] if labels is None else labels
    window = 1 if y == "leakage" else smoothing
    drawn = 0
    for i, (history, label) in enumerate(zip(histories, names, strict=True)):
        abscissa, ordinate = history.curve(x, y, window)
        drawn += abscissa.size
        axes.plot(
            abscissa,
            ordinate,
            label=label,
            color=_COLOURS[i % len(_COLOURS)],
            linestyle=_STYLES[i // len(_COLOURS) % len(_STYLES)],
            drawstyle="steps-post" if y == "leakage" else "default",
            linewidth=1.5,
        )
    if not drawn:
        raise RunError(f"{', '.join(names)}: holds no {y} to draw; a run without learning has no evaluations")
    axes.set_xlabel(X_LABELS[x])
    axes.set_ylabel(Y_LABELS[y] + (f", mean of {window}" if window > 1 else ""))
    axes.set_xlim(left=0)
    axes.grid(visible=True, alpha=0.3)
    axes.legend(frameon=False)
    if out is not None:
        save(figure, out)
    return figure


def save(figure: "Figure", out: str | Path) -> None:
    """Write a figure to a file, making its folder; an existing file is replaced by a complete one only.

    Parameters
    ----------
    figure : a figure of matplotlib
    out : file; its ending is the format

    Raises
    ------
    RunError
        If the file cannot be written.
    """
    path = check_path(out, RunError)
    formats = figure.canvas.get_supported_filetypes()
    if path.suffix[1:].lower() not in formats:
        raise RunError(
            f"{str(out)!r} is not allowed; a figure needs a name that ends in .{', .'.join(sorted(formats))}"
        )
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, lambda part: figure.savefig(part, format=path.suffix[1:].lower()))
    except (OSError, ValueError) as error:
        raise RunError(f"{path}: the figure cannot be written: {error}") from None
