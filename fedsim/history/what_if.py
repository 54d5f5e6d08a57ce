"""What deadlines would have changed."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike

from fedsim.arrays import FloatArray, IntArray
from fedsim.clock import TIE_ULPS
from fedsim.errors import RunError
from fedsim.history.accounting import SERVED
from fedsim.history.columns import RoundColumns, codes_of, edges_of
from fedsim.history.outcomes import FATES

if TYPE_CHECKING:
    from fedsim.history.history import History


@dataclass(frozen=True)
class DeadlineWhatIf:
    """What deadlines would have changed, each round taken as it was up to that instant.

    A round would have ended at the deadline if it lasted longer, and lost the updates that came later and were used.
    The rounds after it would have been others; for these simulate the deadline. What a longer deadline than the round
    lasted would have brought cannot be told: it saves and loses nothing.

    Attributes
    ----------
    deadlines_s : seconds from when a round's cohort was sent, as the policy ``deadline`` counts them, shape (X,)
    edge, round : which rounds, shape (R,); the edge is -1 without edge servers
    duration_s : how long they lasted, shape (R,)
    used : updates that went into each round's model, shape (R,)
    saved_s : by how much each round would have been shorter, shape (R, X)
    lost : how many of its updates would have been lost, shape (R, X)
    """

    deadlines_s: FloatArray
    edge: IntArray
    round: IntArray
    duration_s: FloatArray
    used: IntArray
    saved_s: FloatArray
    lost: IntArray

    @property
    def lost_share(self) -> FloatArray:
        """Share of each round's updates that would have been lost, shape (R, X); NaN where it had none."""
        used = self.used[:, None]
        return np.where(used > 0, self.lost / np.maximum(used, 1), np.nan)

    def totals(self) -> pa.Table:
        """Return a row for each deadline, over all rounds.

        Columns: ``deadline_s``, ``saved_s``, ``saved_share`` of the rounds' time, ``lost`` updates, ``lost_share`` of
        those used, and ``shortened``, the number of rounds that would have been shorter.
        """
        time_s, used = self.duration_s.sum(), self.used.sum()
        saved_s, lost = self.saved_s.sum(axis=0), self.lost.sum(axis=0)
        return pa.table(
            {
                "deadline_s": self.deadlines_s,
                "saved_s": saved_s,
                "saved_share": saved_s / time_s if time_s > 0 else np.zeros(saved_s.size),
                "lost": lost,
                "lost_share": lost / used if used > 0 else np.zeros(lost.size),
                "shortened": np.count_nonzero(self.saved_s > 0, axis=0),
            }
        )


def deadline_whatif(history: "History", deadlines_s: ArrayLike) -> DeadlineWhatIf:
    """Return what each of some deadlines, in seconds from when a round's cohort was sent, would have saved and lost.

    Raises
    ------
    RunError
        If a deadline is no finite number above 0.
    """
    wanted_s = np.atleast_1d(np.asarray(deadlines_s, dtype=np.float64))
    if not np.all(np.isfinite(wanted_s) & (wanted_s > 0)):
        raise RunError(f"deadlines_s: {wanted_s.tolist()} is not allowed; allowed: finite numbers of seconds above 0")
    rounds = RoundColumns.of(history)
    sent_s = rounds.sent_s(history)
    at, came_s = _used(history, rounds, sent_s)
    order = np.argsort(wanted_s, kind="stable")
    # An update is lost by all deadlines that are shorter than the time after which it came.
    shorter = np.searchsorted(wanted_s[order], came_s)
    counts = np.zeros((rounds.round.size, wanted_s.size + 1), dtype=np.int64)
    np.add.at(counts, (at, shorter), 1)
    left_s = (rounds.end_s - sent_s)[:, None] - wanted_s
    lost = np.empty((rounds.round.size, wanted_s.size), dtype=np.int64)
    lost[:, order] = counts[:, :0:-1].cumsum(axis=1)[:, ::-1]
    return DeadlineWhatIf(
        deadlines_s=wanted_s,
        edge=rounds.edge,
        round=rounds.round,
        duration_s=rounds.duration_s,
        used=counts.sum(axis=1),
        saved_s=np.where(left_s > TIE_ULPS * np.spacing(rounds.end_s)[:, None], left_s, 0.0),
        lost=lost,
    )


def arrivals_s(history: "History") -> FloatArray:
    """Return how long after the round that used it had sent its cohort each used update came, in ascending order.

    Updates of earlier cohorts may have come before that.
    """
    rounds = RoundColumns.of(history)
    return np.sort(_used(history, rounds, rounds.sent_s(history))[1])


def _used(history: "History", rounds: RoundColumns, sent_s: FloatArray) -> tuple[IntArray, FloatArray]:
    """Return for each used update the place of the round that used it, and how long after its cohort was sent it came.

    Rounding errors are taken off the time, as a deadline's own instant is in time.
    """
    used = np.flatnonzero(codes_of(history.participations.column("fate"), FATES) < len(SERVED))
    served = history.column("participations", "served_round")[used].astype(np.int64)
    at = rounds.numbered(edges_of(history)[used], served)
    end_s = history.column("participations", "end_s")[used]
    return at, end_s - sent_s[at] - TIE_ULPS * np.spacing(end_s)
