"""Seconds that deadlines would have saved, and updates that would have been late for them."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike

from fedsim.arrays import BoolArray, FloatArray, IntArray
from fedsim.clock import TIE_ULPS
from fedsim.errors import RunError
from fedsim.history.analyses.lost import Lost
from fedsim.history.columns import RoundColumns, codes_of, edges_of
from fedsim.history.outcomes import Fate, Outcome, RoundEnd
from fedsim.history.tables import Tables


@dataclass(frozen=True)
class DeadlineWhatIf:
    """Effect of X deadlines on each of R rounds, every round taken as it was up to the deadline.

    A round that lasted longer than the deadline would have ended then, and the used updates that arrived later would
    have been late for it: lost, unless later rounds use late updates, as they do where ``used_later`` holds. The rounds
    after it would have been different: simulate the deadline to see these. A deadline that is longer than that of a
    round which lost clients cannot be seen in its history, and none can where clients are sent one by one.
    """

    deadlines_s: FloatArray
    edge: IntArray
    round: IntArray
    duration_s: FloatArray
    used: IntArray
    saved_s: FloatArray
    late: IntArray
    used_later: bool
    seen: BoolArray

    @property
    def lost(self) -> IntArray:
        """Updates of each round that would have been lost, shape (R, X)."""
        return self.late * (not self.used_later)

    @property
    def lost_share(self) -> FloatArray:
        """Share of each round's updates that would have been lost, shape (R, X); NaN where it had none."""
        used = self.used[:, None]
        return np.where(used > 0, self.lost / np.maximum(used, 1), np.nan)

    def totals(self) -> pa.Table:
        """Return the sums over all rounds, one row a deadline.

        Columns: ``deadline_s``, ``saved_s``, ``saved_share`` of the rounds' time, updates that would have been ``late``
        and those of them that would have been ``lost``, ``lost_share`` of the used updates, and ``shortened``, the
        number of rounds that would have been shorter; null where the effect of a deadline cannot be seen in this
        history.
        """
        time_s, used = self.duration_s.sum(), self.used.sum()
        saved_s, late, lost = (of.sum(axis=0) for of in (self.saved_s, self.late, self.lost))
        columns = {
            "saved_s": saved_s,
            "saved_share": saved_s / time_s if time_s > 0 else np.zeros(saved_s.size),
            "late": late,
            "lost": lost,
            "lost_share": lost / used if used > 0 else np.zeros(lost.size),
            "shortened": np.count_nonzero(self.saved_s > 0, axis=0),
        }
        masked = {name: pa.array(values, mask=~self.seen) for name, values in columns.items()}
        return pa.table({"deadline_s": self.deadlines_s, **masked})


def deadline_whatif(tables: Tables, deadlines_s: ArrayLike) -> DeadlineWhatIf:
    """Return the seconds that deadlines would have saved and the updates that would have been late for them.

    Parameters
    ----------
    tables : of the run
    deadlines_s : seconds after a round's cohort was sent, a number or shape (X,)

    Raises
    ------
    RunError
        If a deadline is no finite number above 0.
    """
    wanted_s = np.atleast_1d(np.asarray(deadlines_s, dtype=np.float64))
    if not np.all(np.isfinite(wanted_s) & (wanted_s > 0)):
        raise RunError(f"deadlines_s: {wanted_s.tolist()} is not allowed; allowed: finite numbers of seconds above 0")
    rounds = RoundColumns.of(tables)
    sent_s = rounds.sent_s(tables)
    at, arrival_s = _used(tables, rounds, sent_s)
    outcome, fate = (tables.column("participations", name) for name in ("outcome", "fate"))
    order = np.argsort(wanted_s, kind="stable")
    # All deadlines that are shorter than an update's time of arrival lose it.
    shorter = np.searchsorted(wanted_s[order], arrival_s)
    counts = np.zeros((rounds.round.size, wanted_s.size + 1), dtype=np.int64)
    np.add.at(counts, (at, shorter), 1)
    left_s = (rounds.closed_s(tables) - sent_s)[:, None] - wanted_s
    cut = (rounds.ended_by == RoundEnd.DEADLINE) & (rounds.missing > 0)
    late = np.empty((rounds.round.size, wanted_s.size), dtype=np.int64)
    late[:, order] = counts[:, :0:-1].cumsum(axis=1)[:, ::-1]
    unseen = (cut[:, None] & (left_s < -TIE_ULPS * np.spacing(rounds.end_s)[:, None])).any(axis=0)
    return DeadlineWhatIf(
        deadlines_s=wanted_s,
        edge=rounds.edge,
        round=rounds.round,
        duration_s=rounds.duration_s,
        used=counts.sum(axis=1),
        saved_s=np.where(left_s > TIE_ULPS * np.spacing(rounds.end_s)[:, None], left_s, 0.0),
        late=late,
        used_later=bool(np.any((outcome == Outcome.LATE.label) & (fate == Fate.STALE_USED.label))),
        seen=~unseen & (not Lost.of(tables).one_by_one),
    )


def arrivals_s(tables: Tables) -> FloatArray:
    """Return the arrival time of each used update, shape (U,), in ascending order.

    It counts in seconds from when the round that used the update sent its cohort. An update of an earlier cohort may
    have arrived before: its time is negative.
    """
    rounds = RoundColumns.of(tables)
    return np.sort(_used(tables, rounds, rounds.sent_s(tables))[1])


def _used(tables: Tables, rounds: RoundColumns, sent_s: FloatArray) -> tuple[IntArray, FloatArray]:
    """Return the place of the round that used each update, and the seconds from dispatch to arrival, shape (U,).

    The seconds are without rounding errors upwards, because an arrival at the deadline's own instant is in time.
    """
    used = np.flatnonzero(codes_of(tables.participations.column("fate"), Fate) <= Fate.STALE_USED)
    served = tables.column("participations", "served_round")[used].astype(np.int64)
    at = rounds.numbered(edges_of(tables)[used], served)
    end_s = tables.column("participations", "end_s")[used]
    return at, end_s - sent_s[at] - TIE_ULPS * np.spacing(end_s)
