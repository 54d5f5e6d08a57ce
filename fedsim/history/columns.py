"""Columns of a history's tables as arrays, for what is worked out from them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from fedsim.arrays import FloatArray, IntArray
from fedsim.clock import TIE_ULPS
from fedsim.history.outcomes import ENDS

if TYPE_CHECKING:
    from fedsim.history.history import History

SECONDS: Final = ("downlink_s", "compute_s", "queue_s", "uplink_s")
NO_EDGE: Final = -1


def codes_of(labels: pa.ChunkedArray, names: Sequence[str]) -> IntArray:
    """Return the place of each label among some names."""
    found = pc.index_in(labels.cast(pa.string()), value_set=pa.array(names))
    return np.asarray(found.to_numpy()).astype(np.int64)


def edges_of(history: "History", table: Literal["participations", "probes"] = "participations") -> IntArray:
    """Return the edge server of each participation or question, `NO_EDGE` without edge servers."""
    edge = history.column(table, "edge").astype(np.float64)
    return np.where(np.isnan(edge), NO_EDGE, edge).astype(np.int64)


@dataclass(frozen=True)
class RoundColumns:
    """The rounds that participations belong to, edge by edge, each edge's in their order.

    Attributes
    ----------
    edge : index of the edge server, -1 for the only server, shape (R,)
    round, start_s, end_s, missing : columns of the table, shape (R,); missing are those late or dropped
    ended_by : codes of `RoundEnd`, shape (R,)
    """

    edge: IntArray
    round: IntArray
    start_s: FloatArray
    end_s: FloatArray
    missing: IntArray
    ended_by: IntArray

    @classmethod
    def of(cls, history: "History") -> Self:
        """Return the rounds of a run: those of its edge servers if it has any."""
        name: Literal["rounds", "edge_rounds"] = "rounds" if history.edge_rounds is None else "edge_rounds"
        number = history.column(name, "round").astype(np.int64)
        edge = np.full(number.size, NO_EDGE) if name == "rounds" else history.column(name, "edge").astype(np.int64)
        order = np.lexsort((number, edge))
        missing = history.column(name, "late") + history.column(name, "dropped")
        ended_by = codes_of(getattr(history, name).column("ended_by"), ENDS)
        return cls(
            edge[order],
            number[order],
            history.column(name, "start_s")[order],
            history.column(name, "end_s")[order],
            missing[order].astype(np.int64),
            ended_by[order],
        )

    @property
    def duration_s(self) -> FloatArray:
        """How long each lasted, shape (R,)."""
        return self.end_s - self.start_s

    def sent_s(self, history: "History") -> FloatArray:
        """Return when each sent its cohort, shape (R,): the beginning of those that sent none, or sent one by one."""
        at = self.numbered(edges_of(history), history.column("participations", "round").astype(np.int64))
        start_s = history.column("participations", "start_s")
        # What began in a round that is not over stands behind all others.
        first_s, last_s = np.full(self.round.size + 1, np.inf), np.full(self.round.size + 1, -np.inf)
        np.minimum.at(first_s, at, start_s)
        np.maximum.at(last_s, at, start_s)
        return np.where(first_s == last_s, first_s, np.append(self.start_s, 0.0))[:-1]

    def numbered(self, edge: IntArray, number: IntArray) -> IntArray:
        """Return the place of each edge's round of a number; R for a round that was not over when the run was."""
        width = max(int(number.max(initial=0)), int(self.round.max(initial=0))) + 1
        key = self.edge * width + self.round
        at = np.searchsorted(key, edge * width + number)
        known = at < key.size
        known[known] = key[at[known]] == (edge * width + number)[known]
        return np.where(known, at, key.size)

    def ending_at(self, edge: IntArray, time_s: FloatArray) -> IntArray:
        """Return the place of each edge's round that ended at an instant, or -1 if none did."""
        found = np.full(time_s.size, -1)
        for one in np.unique(edge):
            low, high = np.searchsorted(self.edge, [one, one + 1])
            mine = edge == one
            at = low + np.searchsorted(self.end_s[low:high], time_s[mine])
            close = at < high
            close[close] = self._ends_at(at[close], time_s[mine][close])
            found[mine] = np.where(close, at, -1)
        return found

    def _ends_at(self, at: IntArray, time_s: FloatArray) -> NDArray[np.bool_]:
        return np.asarray(self.end_s[at] - time_s <= TIE_ULPS * np.spacing(self.end_s[at]))
