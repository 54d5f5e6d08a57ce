"""The history of a run with its analyses, as a notebook uses it."""

from pathlib import Path

from fedsim.history import accounting, critical_path, figures, what_if
from fedsim.history.tables import Tables, X, Y


class History(Tables):
    """The tables of one run, and the analyses of this room as methods.

    Times are simulated seconds. No value depends on the machine or on when the run was made.
    """

    by_fate = accounting.by_fate
    cloud_path = critical_path.cloud_path
    critical_path = critical_path.critical_path
    deadline_whatif = what_if.deadline_whatif

    def plot(
        self, x: X = "time", y: Y = "accuracy", *, smoothing: int = 1, out: str | Path | None = None
    ) -> "figures.Figure":
        """Return a figure of one quantity against seconds or rounds; see `fedsim.history.figures.draw`."""
        return figures.draw([self], x, y, smoothing=smoothing, out=out)
