"""The history of a run with its analyses, as a notebook uses it."""

from pathlib import Path

import pyarrow as pa
from numpy.typing import ArrayLike

from fedsim.history import figures
from fedsim.history.accounting import by_fate
from fedsim.history.critical_path import cloud_path, critical_path
from fedsim.history.tables import Tables, X, Y
from fedsim.history.what_if import DeadlineWhatIf, deadline_whatif


class History(Tables):
    """The tables of one run, and the analyses of this room as methods.

    Times are simulated seconds. No value depends on the machine or on when the run was made.
    """

    def by_fate(self) -> pa.Table:
        """Return the seconds, bits and joules of each fate; see `fedsim.history.accounting.by_fate`."""
        return by_fate(self)

    def critical_path(self) -> pa.Table:
        """Return the cause of each round's length; see `fedsim.history.critical_path.critical_path`."""
        return critical_path(self)

    def cloud_path(self) -> pa.Table | None:
        """Return the cause of the length of each round of the cloud; see `fedsim.history.critical_path.cloud_path`."""
        return cloud_path(self)

    def deadline_whatif(self, deadlines_s: ArrayLike) -> DeadlineWhatIf:
        """Return what deadlines would have saved and lost; see `fedsim.history.what_if.deadline_whatif`."""
        return deadline_whatif(self, deadlines_s)

    def plot(
        self, x: X = "time", y: Y = "accuracy", *, smoothing: int = 1, out: str | Path | None = None
    ) -> "figures.Figure":
        """Return a figure of one quantity against seconds or rounds; see `fedsim.history.figures.draw`."""
        return figures.draw([self], x, y, smoothing=smoothing, out=out)
