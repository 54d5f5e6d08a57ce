"""Columns of a run's tables as arrays, for the analyses."""

from dataclasses import dataclass
from typing import Final, Literal, Self

import numpy as np
import pyarrow as pa

from fedsim.arrays import FloatArray, IntArray
from fedsim.clock import TIE_ULPS
from fedsim.history.outcomes import Coded, RoundEnd, SecureStep
from fedsim.history.tables import TableName, Tables
from fedsim.inputs.arrow import numbers_of, texts_of

SECONDS: Final = ("downlink_s", "compute_s", "queue_s", "uplink_s")
NO_EDGE: Final = -1


def codes_of(labels: pa.Array | pa.ChunkedArray, kind: type[Coded]) -> IntArray:
    import pyarrow.compute as pc  # takes a tenth of what fedsim's other imports take

    found = pc.index_in(labels.cast(pa.string()), value_set=texts_of(kind.labels()))
    return numbers_of(found).astype(np.int64)


def edges_of(tables: Tables, table: Literal["participations", "probes", "secure_steps"] = "participations") -> IntArray:
    """Return the edge server of each row, shape (N,), `NO_EDGE` without edge servers."""
    edge = tables.column(table, "edge").astype(np.float64)
    return np.where(np.isnan(edge), NO_EDGE, edge).astype(np.int64)


@dataclass(frozen=True)
class RoundColumns:
    """The R rounds that participations belong to, ordered by edge server and number."""

    edge: IntArray
    round: IntArray
    start_s: FloatArray
    end_s: FloatArray
    delivered: IntArray
    missing: IntArray
    ended_by: IntArray

    @classmethod
    def of(cls, tables: Tables) -> Self:
        """Return the rounds of a run: those of its edge servers if it has any."""
        name: TableName = "rounds" if tables.edge_rounds is None else "edge_rounds"
        rounds = tables.tables()[name]
        number = tables.column(name, "round").astype(np.int64)
        edge = np.full(number.size, NO_EDGE) if name == "rounds" else tables.column(name, "edge").astype(np.int64)
        order = np.lexsort((number, edge))
        missing = tables.column(name, "late") + tables.column(name, "dropped")
        return cls(
            edge[order],
            number[order],
            tables.column(name, "start_s")[order],
            tables.column(name, "end_s")[order],
            tables.column(name, "delivered")[order].astype(np.int64),
            missing[order].astype(np.int64),
            codes_of(rounds.column("ended_by"), RoundEnd)[order],
        )

    @property
    def duration_s(self) -> FloatArray:
        return self.end_s - self.start_s

    def sent_s(self, tables: Tables) -> FloatArray:
        """Return when each round sent its cohort, shape (R,); its beginning if it sent none, or clients one by one."""
        at = self.numbered(edges_of(tables), tables.column("participations", "round").astype(np.int64))
        start_s = tables.column("participations", "start_s")
        # What began in a round that is not over has the last place.
        first_s, last_s = np.full(self.round.size + 1, np.inf), np.full(self.round.size + 1, -np.inf)
        np.minimum.at(first_s, at, start_s)
        np.maximum.at(last_s, at, start_s)
        return np.where(first_s == last_s, first_s, np.append(self.start_s, 0.0))[:-1]

    def steps_s(self, tables: Tables) -> tuple[FloatArray, FloatArray]:
        """Return when steps of secure aggregation began in each round, and were over, shape (R, steps); else inf."""
        began_s, over_s = np.full((2, self.round.size + 1, len(SecureStep)), np.inf)
        if tables.secure_steps is not None:
            number = tables.column("secure_steps", "round").astype(np.int64)
            step = codes_of(tables.secure_steps.column("step"), SecureStep)
            at = self.numbered(edges_of(tables, "secure_steps"), number), step
            np.minimum.at(began_s, at, tables.column("secure_steps", "start_s"))
            over_s[at] = -np.inf
            np.maximum.at(over_s, at, tables.column("secure_steps", "end_s"))
        return began_s[:-1], over_s[:-1]

    def closed_s(self, tables: Tables) -> FloatArray:
        """Return when each round stopped waiting for updates, shape (R,): its end, or before masks are taken away."""
        return np.minimum(self.end_s, self.steps_s(tables)[0][:, SecureStep.UNMASK])

    def numbered(self, edge: IntArray, number: IntArray) -> IntArray:
        """Return the place of each edge server's round of a number, shape (n,); R for a round that was not over."""
        width = max(int(number.max(initial=0)), int(self.round.max(initial=0))) + 1
        key = self.edge * width + self.round
        at = np.searchsorted(key, edge * width + number)
        known = at < key.size
        known[known] = key[at[known]] == (edge * width + number)[known]
        return np.where(known, at, key.size)

    def ending_at(self, ends_s: FloatArray, edge: IntArray, time_s: FloatArray) -> IntArray:
        """Return the place of each edge server's round with its end at an instant, shape (n,); -1 if none has."""
        found = np.full(time_s.size, -1)
        for one in np.unique(edge):
            low, high = np.searchsorted(self.edge, [one, one + 1])
            mine = edge == one
            at = low + np.searchsorted(ends_s[low:high], time_s[mine])
            close = at < high
            end_s = ends_s[at[close]]
            close[close] = end_s - time_s[mine][close] <= TIE_ULPS * np.spacing(end_s)
            found[mine] = np.where(close, at, -1)
        return found
