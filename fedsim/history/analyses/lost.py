"""Which clients a run lost: how often, in which phase, by how many seconds; deadlines that would have kept them."""

from dataclasses import dataclass
from typing import Final, Self

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike

from fedsim.arrays import BoolArray, FloatArray, IntArray
from fedsim.clock import TIE_ULPS
from fedsim.errors import RunError
from fedsim.history.columns import RoundColumns, codes_of, edges_of
from fedsim.history.outcomes import COMPUTE, DOWNLINK, PHASES, UPLINK, Outcome, RoundEnd
from fedsim.history.tables import Tables

SHARES: Final = (0.5, 0.9, 1.0)


@dataclass(frozen=True)
class Lost:
    """The n participations that did not end in time, and how long each would have taken; shape (n,).

    A late client that went on has arrived: its seconds are known. Of one that was cancelled in its uplink they are
    about those at the mean rate that it had until then. Of others nothing is known. Where clients are sent one by one,
    those that were still in flight as the run ended are neither late nor lost.
    """

    client: IntArray
    late: BoolArray
    phase: IntArray
    limit_s: FloatArray
    known_s: FloatArray
    about_s: FloatArray
    one_by_one: bool

    @classmethod
    def of(cls, tables: Tables) -> Self:
        """Return them; times count from when the round sent its cohort, and a limit is when the round ended.

        Where clients are sent one by one, each has its own beginning, and is given up at its limit.
        """
        outcome = codes_of(tables.participations.column("outcome"), Outcome)
        in_flight, one_by_one = _in_flight(tables)
        at = np.flatnonzero((outcome != Outcome.DELIVERED) & ~in_flight)
        names = ("start_s", "end_s", "downlink_s", "compute_s", "uplink_s")
        start_s, end_s, downlink_s, compute_s, uplink_s = (tables.column("participations", name)[at] for name in names)
        rounds = RoundColumns.of(tables)
        place = rounds.numbered(edges_of(tables)[at], tables.column("participations", "round")[at].astype(np.int64))
        # A round that was not over has no end yet.
        began_s, over_s = (np.append(of(tables), np.nan)[place] for of in (rounds.sent_s, rounds.closed_s))
        if one_by_one:
            began_s, over_s = start_s, end_s
        cut = tables.column("participations", "cut_in")[at]
        arrived = tables.participations.column("cut_in").is_null().to_numpy()[at]
        left_s = over_s - start_s
        found = np.where(left_s < downlink_s, DOWNLINK, np.where(left_s < downlink_s + compute_s, COMPUTE, UPLINK))
        phase = np.select([cut == name for name in PHASES], range(len(PHASES)), found)
        known_s = np.where(arrived, end_s - began_s, np.nan)
        late = outcome[at] == Outcome.LATE
        client, bits = (tables.column("participations", name) for name in ("client", "uplink_bits"))
        # A message is as large as the largest that its client has delivered, or else as that of anybody.
        whole = np.zeros(int(client.max(initial=0)) + 1)
        np.maximum.at(whole, client, np.where(outcome == Outcome.DELIVERED, bits, 0.0))
        whole, sent = np.where(whole > 0, whole, whole.max())[client[at]], bits[at]
        # No deadline keeps what a crash of the server has cut.
        crashed = np.append(rounds.ended_by == RoundEnd.RESTART, False)[place]
        partly = late & ~arrived & ~crashed & (phase == UPLINK) & (sent > 0) & (whole > sent)
        with np.errstate(divide="ignore", invalid="ignore"):
            rest_s = np.where(partly, (whole - sent) / sent * uplink_s, np.nan)
        about_s = np.where(arrived, known_s, end_s - began_s + rest_s)
        return cls(client[at], late, phase, over_s - began_s, known_s, about_s, one_by_one)

    @property
    def goes_on(self) -> bool:
        """Whether late clients go on: some have arrived."""
        return bool(np.isfinite(self.known_s[self.late]).any())


def _in_flight(tables: Tables) -> tuple[BoolArray, bool]:
    """Return which participations the end of the run alone has ended, shape (N,); whether clients go one by one.

    A server of cohorts counts each member in its round. One that fills places counts whom it has given up.
    """
    rounds = RoundColumns.of(tables)
    place = rounds.numbered(edges_of(tables), tables.column("participations", "round").astype(np.int64))
    ended_s = tables.column("participations", "end_s")
    late = codes_of(tables.participations.column("outcome"), Outcome) == Outcome.LATE
    last_s = ended_s.max(initial=0.0)
    cut = late & tables.participations.column("cut_in").is_valid().to_numpy()
    cut &= last_s - ended_s <= TIE_ULPS * np.spacing(last_s)
    over = place < rounds.round.size
    one_by_one = bool(np.count_nonzero(over) > rounds.delivered.sum() + rounds.missing.sum())
    return cut & (~over | one_by_one), one_by_one


def lost(tables: Tables) -> pa.Table:
    """Return the clients that did not end in time, those that were lost most often first.

    Columns: ``client``, ``selected``, ``late``, ``dropped``, and how many of the lost were in their ``downlink``,
    ``compute`` or ``uplink`` when the round ended; ``missed_by_s``, the median seconds that were lacking, of late
    clients that went on; ``missed_by_about_s`` the same with clients that were cancelled in their uplink, at the mean
    rate that they had; null where that is not known.
    """
    found = Lost.of(tables)
    clients, own = np.unique(found.client, return_inverse=True)
    selected = np.bincount(tables.column("participations", "client"), minlength=int(clients.max(initial=0)) + 1)

    def count(chosen: BoolArray) -> IntArray:
        return np.bincount(own[chosen], minlength=clients.size)

    late, dropped = count(found.late), count(~found.late)
    columns = {"client": clients, "selected": selected[clients], "late": late, "dropped": dropped}
    columns |= {name: count(found.phase == code) for code, name in enumerate(PHASES)}
    missed = {"missed_by_s": found.known_s - found.limit_s, "missed_by_about_s": found.about_s - found.limit_s}
    medians = {name: _medians(own, np.where(found.late, of, np.nan), clients.size) for name, of in missed.items()}
    order = np.lexsort((clients, -(late + dropped)))
    arrays = {name: pa.array(values[order], pa.int32()) for name, values in columns.items()}
    return pa.table(arrays | {name: pa.array(of[order], mask=np.isnan(of[order])) for name, of in medians.items()})


def deadlines_that_keep(tables: Tables, shares: ArrayLike = SHARES) -> pa.Table:
    """Return the deadlines within which shares of the late participations would have ended.

    Columns: ``share``, ``deadline_s`` in seconds from when a round sent its cohort, and ``about_s`` with clients that
    were cancelled in their uplink; null where it cannot be seen. No deadline keeps dropped clients.

    Parameters
    ----------
    tables : of the run
    shares : above 0 and at most 1, a number or shape (X,)

    Raises
    ------
    RunError
        If a share is not allowed.
    """
    wanted = np.atleast_1d(np.asarray(shares, dtype=np.float64))
    if not np.all((wanted > 0) & (wanted <= 1)):
        raise RunError(f"shares: {wanted.tolist()} is not allowed; allowed: numbers above 0 and at most 1")
    found = Lost.of(tables)
    columns = {"share": pa.array(wanted)}
    for name, seconds in (("deadline_s", found.known_s), ("about_s", found.about_s)):
        # Who has no known end comes last: only what lies before can be seen.
        ascending = np.sort(np.where(np.isnan(seconds), np.inf, seconds)[found.late])
        rank = np.maximum(np.ceil(np.round(wanted * ascending.size, 9)).astype(np.int64), 1) - 1
        at_s = ascending[rank] if ascending.size else np.full(wanted.size, np.inf)
        columns[name] = pa.array(at_s, mask=np.isinf(at_s))
    return pa.table(columns)


def _medians(group: IntArray, values: FloatArray, groups: int) -> FloatArray:
    there = ~np.isnan(values)
    order = np.lexsort((values[there], group[there]))
    ascending, counts = values[there][order], np.bincount(group[there], minlength=groups)
    found, some = np.full(groups, np.nan), counts > 0
    first = (np.cumsum(counts) - counts)[some]
    found[some] = (ascending[first + (counts[some] - 1) // 2] + ascending[first + counts[some] // 2]) / 2
    return found
