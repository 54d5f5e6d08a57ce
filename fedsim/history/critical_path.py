"""Cause of each round's length: the client and the phase on the critical path, or what else ended the round."""

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fedsim.arrays import BoolArray, FloatArray, IntArray
from fedsim.history.accounting import SECURE
from fedsim.history.columns import NO_EDGE, SECONDS, RoundColumns, codes_of, edges_of
from fedsim.history.outcomes import RoundEnd
from fedsim.history.tables import Tables


def critical_path(tables: Tables) -> pa.Table:
    """Return the cause of each round's length, one row a round.

    Columns: ``edge`` (null without edge servers), ``round``, ``duration_s``, ``cause``, ``client``, ``phase``,
    ``phase_s`` and ``missing``, the number of clients that were late or dropped. The cause is

    * ``"client"``: the update of this client arrived and ended the round. ``phase`` is its longest phase: downlink,
      compute, queue, uplink, probe (the server's question before it sent the client), or secure-aggregation (the steps
      of its round, before clients are sent and after updates have arrived); ``phase_s`` is its length. The client may
      have started in an earlier round;
    * ``"deadline"``: the round lasted as long as its policy allows;
    * ``"wait"``: no update ended the round: a minimum wait was over, or no client was left to wait for;
    * ``"restart"``: the server crashed.

    With edge servers these are the rounds of the edge servers; `cloud_path` has those of the cloud.
    """
    rounds = RoundColumns.of(tables)
    of_phases = (tables.column("participations", name) for name in SECONDS)
    seconds = np.stack([*of_phases, _probe_s(tables), _secure_s(tables, rounds)], axis=1)
    arrived, at = _ended(tables, rounds)
    last = np.full(rounds.round.size, -1)
    # Of several that arrived at the same instant the first one in the table is named.
    last[at[::-1]] = arrived[::-1]
    named = (rounds.ended_by == RoundEnd.ENOUGH) & (last >= 0)
    phase = seconds[last].argmax(axis=1) if seconds.size else np.zeros(last.size, dtype=np.int64)
    client = tables.column("participations", "client")
    labels = np.array([*(name.removesuffix("_s") for name in SECONDS), "probe", SECURE])
    return pa.table(
        {
            "edge": pa.array(rounds.edge, pa.int32(), mask=rounds.edge == NO_EDGE),
            "round": pa.array(rounds.round, pa.int32()),
            "duration_s": rounds.duration_s,
            "cause": _causes(rounds.ended_by, named, "client"),
            "client": pa.array(client[last] if client.size else last, pa.int32(), mask=~named),
            "phase": pa.array(labels[phase], mask=~named),
            "phase_s": pa.array(seconds[last, phase] if seconds.size else np.zeros(last.size), mask=~named),
            "missing": rounds.missing,
        }
    )


def cloud_path(tables: Tables) -> pa.Table | None:
    """Return the cause of the length of each round of the cloud, one row a round; None without edge servers.

    Columns: ``round``, ``duration_s``, ``cause``, ``edge``, ``phase`` and ``phase_s``. The cause is

    * ``"edge"``: the round ended when the model of this edge server arrived. ``phase`` is the edge server's longest
      phase: downlink from the cloud, edge rounds with their waits, or uplink to the cloud;
    * ``"restart"``: the server crashed;
    * ``"wait"``: no model of an edge server arrived.
    """
    if tables.edge_participations is None:
        return None
    names = ("round", "edge", "start_s", "end_s", "downlink_s", "uplink_s")
    cycle = {name: tables.column("edge_participations", name) for name in names}
    rest_s = cycle["end_s"] - cycle["start_s"] - cycle["downlink_s"] - cycle["uplink_s"]
    seconds = np.stack([cycle["downlink_s"], rest_s, cycle["uplink_s"]], axis=1)
    number = tables.column("rounds", "round")
    last = np.full(number.size, -1)
    # The last in this order stays: of the cycles that ended last, the one of the lowest edge server.
    order = np.lexsort((-cycle["edge"], cycle["end_s"]))
    order = order[~np.isnan(cycle["round"][order].astype(np.float64))]
    last[np.searchsorted(number, cycle["round"][order])] = order
    named, phase = last >= 0, seconds[last].argmax(axis=1) if seconds.size else np.zeros(last.size, dtype=np.int64)
    return pa.table(
        {
            "round": tables.rounds.column("round"),
            "duration_s": tables.rounds.column("duration_s"),
            "cause": _causes(codes_of(tables.rounds.column("ended_by"), RoundEnd), named, "edge"),
            "edge": pa.array(cycle["edge"][last] if seconds.size else last, pa.int32(), mask=~named),
            "phase": pa.array(np.array(["downlink", "edge rounds", "uplink"])[phase], mask=~named),
            "phase_s": pa.array(seconds[last, phase] if seconds.size else np.zeros(last.size), mask=~named),
        }
    )


def _causes(ended_by: IntArray, named: BoolArray, cause: str) -> NDArray[np.str_]:
    enough = ended_by == RoundEnd.ENOUGH
    return np.where(named, cause, np.where(enough, "wait", np.array(RoundEnd.labels())[ended_by]))


def _ended(tables: Tables, rounds: RoundColumns) -> tuple[IntArray, IntArray]:
    """Return the participations whose updates arrived as a round ended, and the places of these rounds, shape (n,).

    Of several rounds that ended at that instant the round is the one that used the update, or else the first.
    """
    arrived = np.flatnonzero(tables.participations.column("cut_in").is_null().to_numpy())
    edge, end_s = edges_of(tables)[arrived], tables.column("participations", "end_s")[arrived]
    ends_s = rounds.closed_s(tables)
    at = rounds.ending_at(ends_s, edge, end_s)
    served = tables.column("participations", "served_round")[arrived].astype(np.float64)
    used = np.flatnonzero((at >= 0) & ~np.isnan(served))
    by = rounds.numbered(edge[used], served[used].astype(np.int64))
    at[used] = np.where(ends_s[by] == ends_s[at[used]], by, at[used])
    return arrived[at >= 0], at[at >= 0]


def _secure_s(tables: Tables, rounds: RoundColumns) -> FloatArray:
    """Return the length of the steps of secure aggregation in the round of each participation, shape (N,)."""
    began_s, over_s = rounds.steps_s(tables)
    lengths_s = np.subtract(over_s, began_s, out=np.zeros(began_s.shape), where=np.isfinite(began_s)).sum(axis=1)
    at = rounds.numbered(edges_of(tables), tables.column("participations", "round").astype(np.int64))
    return np.append(lengths_s, 0.0)[at]


def _probe_s(tables: Tables) -> FloatArray:
    """Return the length of the probe before each participation, shape (N,); 0 without a probe.

    It is the last probe that was over by then, if it began in the same round or ended at that instant: the round of an
    asynchronous server may change during a probe. A server has at most one probe at a time.
    """
    edge, number = edges_of(tables), tables.column("participations", "round")
    sent_s, probe_s = tables.column("participations", "start_s"), np.zeros(number.size)
    if tables.probes is None:
        return probe_s
    probe_edge, probe_start_s = edges_of(tables, "probes"), tables.column("probes", "start_s")
    for one in np.unique(probe_edge):
        rows, mine = np.flatnonzero(probe_edge == one), np.flatnonzero(edge == one)
        start_s, first, probe = np.unique(probe_start_s[rows], return_index=True, return_inverse=True)
        end_s = np.full(start_s.size, -np.inf)
        np.maximum.at(end_s, probe, tables.column("probes", "end_s")[rows])
        last = np.searchsorted(end_s, sent_s[mine], side="right") - 1
        own = tables.column("probes", "round")[rows][first][last] == number[mine]
        own = (last >= 0) & (own | (end_s[last] == sent_s[mine]))
        probe_s[mine] = np.where(own, end_s[last] - start_s[last], 0.0)
    return probe_s
