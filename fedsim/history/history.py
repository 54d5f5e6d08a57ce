"""What happened, as tables.

`participations` has a row for each client in each round, `rounds` one for each round, `evaluations` one for each
evaluation of the global model, `edge_rounds` one for each round of an edge server (there, the rounds of the
participations are those of their edge, and `rounds` are the cloud's), `edge_participations` one for each time that an
edge server fetched the cloud's model, ran its rounds and brought back its own, with the seconds and bits of both ways
over the backhaul, `probes` one for each client that was asked a question before a selection, and `accounts`, of runs
that are audited, one for each client: the seconds for which it was idle, receiving, computing, queueing, sending or in
a phase that was cut off, probes included,
which add up to the run's length. They are Arrow tables (``to_pandas()`` works where pandas is installed). Times are
simulated seconds; nothing in them depends on the machine or on when the run was made. A participation's times of
transfer exclude ``queue_s``, the wait for a medium to be free; its bits are those carried, in part where it was cut;
``energy_j`` is what its battery paid for them and for the work, 0 where energy is not looked at. Its ``fate`` says
whether they served: `fedsim.history.outcomes.Fate`. A round's ``ended_by`` says what ended it:
`fedsim.history.outcomes.RoundEnd`.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from fedsim.history.accounting import by_fate
from fedsim.history.critical_path import cloud_path, critical_path
from fedsim.history.tables import TableName, X, Y, causal_mean
from fedsim.history.what_if import DeadlineWhatIf, deadline_whatif

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.figure import Figure


@dataclass(frozen=True)
class History:
    """All that happened in one run.

    Attributes
    ----------
    name : name of the scenario
    participations, rounds, evaluations : Arrow tables with the schemas of `fedsim.history.schema`
    edge_rounds : one row for each round of an edge server; None where there are none
    edge_participations : one row for each time that an edge server went from the cloud to its clients and back; None
        where there are none. Its round is the cloud's that took note of it, null if the run ended before; its staleness
        is how often the cloud had merged since it fetched its model, null if it brought none
    probes : one row for each client that was asked a question; None where nobody was
    accounts : one row for each client of a run that is audited, None otherwise
    """

    name: str
    participations: pa.Table
    rounds: pa.Table
    evaluations: pa.Table
    edge_rounds: pa.Table | None = None
    edge_participations: pa.Table | None = None
    probes: pa.Table | None = None
    accounts: pa.Table | None = None

    def column(self, table: TableName, name: str) -> NDArray[Any]:
        """Return a column as a NumPy array."""
        values = getattr(self, table).column(name)
        return np.asarray(values.to_numpy())

    def curve(
        self, x: X = "time", y: Y = "accuracy", smoothing: int = 1
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return one quantity against simulated seconds or rounds.

        Parameters
        ----------
        x : ``"time"`` (seconds) or ``"round"``
        y : ``"accuracy"``, ``"loss"``, ``"leakage"`` (largest epsilon leaked) or ``"duration"`` (of rounds, s)
        smoothing : window of the causal mean; 1 for none (PAUSE, section V-B, uses 10 for accuracy)
        """
        if y in ("accuracy", "loss"):
            table: Literal["evaluations", "rounds"] = "evaluations"
            abscissa = "time_s" if x == "time" else "round"
            ordinate: str = y
        else:
            table = "rounds"
            abscissa = "end_s" if x == "time" else "round"
            ordinate = "largest_leakage" if y == "leakage" else "duration_s"
        values = causal_mean(self.column(table, ordinate).astype(np.float64), smoothing)
        return self.column(table, abscissa).astype(np.float64), values

    def time_to_accuracy(self, target: float, smoothing: int = 1) -> float | None:
        """Return the simulated second at which an evaluation first reaches a test accuracy, None if never.

        Parameters
        ----------
        target : float in (0, 1]
        smoothing : window of the causal mean over evaluations
        """
        time_s, accuracy = self.curve("time", "accuracy", smoothing)
        reached = np.flatnonzero(accuracy >= target)
        return float(time_s[reached[0]]) if reached.size else None

    def by_fate(self) -> pa.Table:
        """Return where seconds and bits went and whether they served; see `fedsim.history.accounting.by_fate`."""
        return by_fate(self)

    def critical_path(self) -> pa.Table:
        """Return what made each round as long as it was; see `fedsim.history.critical_path.critical_path`."""
        return critical_path(self)

    def cloud_path(self) -> pa.Table | None:
        """Return what made each round of the cloud as long as it was; see `fedsim.history.critical_path.cloud_path`."""
        return cloud_path(self)

    def deadline_whatif(self, deadlines_s: ArrayLike) -> DeadlineWhatIf:
        """Return what deadlines would have saved and lost; see `fedsim.history.what_if.deadline_whatif`."""
        return deadline_whatif(self, deadlines_s)

    def plot(
        self, x: X = "time", y: Y = "accuracy", *, smoothing: int = 1, out: "str | Path | None" = None
    ) -> "Figure":
        """Return a figure of one quantity against seconds or rounds, and write it to a file if one is named."""
        from fedsim.history.figures import draw

        return draw([self], x, y, smoothing=smoothing, out=out)
