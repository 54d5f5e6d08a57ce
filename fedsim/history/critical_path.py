"""What made rounds as long as they were."""

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fedsim.arrays import FloatArray, IntArray
from fedsim.history.columns import NO_EDGE, SECONDS, RoundColumns, codes_of, edges_of
from fedsim.history.outcomes import ENDS, RoundEnd

if TYPE_CHECKING:
    from fedsim.history.history import History


def critical_path(history: "History") -> pa.Table:
    """Return a row for each round: what made it as long as it was.

    Columns: ``edge`` (null without edge servers), ``round``, ``duration_s``, ``cause``, ``client``, ``phase``,
    ``phase_s`` and ``missing``. The cause is

    * ``"client"``: the round ended when this client's update arrived; ``phase`` is the longest of its phases (one of
      downlink, compute, queue and uplink, or probe, the question that the server put before it sent the client) and
      ``phase_s`` its length. The client may have started in an earlier round;
    * ``"deadline"``: it lasted as long as the policy allows, and so many clients were ``missing``, late or dropped;
    * ``"wait"``: no update ended it, but a least wait of the server's that was over, or nobody was left to wait for;
    * ``"restart"``: the server crashed.

    With edge servers the rounds are theirs; for those of the cloud see `cloud_path`.
    """
    rounds, seconds = RoundColumns.of(history), _seconds(history)
    arrived, at = _ended(history, rounds)
    last = np.full(rounds.round.size, -1)
    # Of several that arrived at the same instant the first one in the table is named.
    last[at[::-1]] = arrived[::-1]
    named = (rounds.ended_by == RoundEnd.ENOUGH) & (last >= 0)
    phase = seconds[last].argmax(axis=1) if seconds.size else np.zeros(last.size, dtype=np.int64)
    client = history.column("participations", "client")
    labels = np.array([*(name.removesuffix("_s") for name in SECONDS), "probe"])
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


def cloud_path(history: "History") -> pa.Table | None:
    """Return a row for each round of the cloud: what made it as long as it was; None without edge servers.

    Columns: ``round``, ``duration_s``, ``cause``, ``edge``, ``phase`` and ``phase_s``. The cause is ``"edge"``: the
    round ended when this edge server was back, and ``phase`` is the longest of its phases (downlink from the cloud,
    edge rounds with their waits, uplink to it); or ``"restart"``, or ``"wait"`` where no edge server brought anything.
    """
    if history.edge_participations is None:
        return None
    names = ("round", "edge", "start_s", "end_s", "downlink_s", "uplink_s")
    visit = {name: history.column("edge_participations", name) for name in names}
    rest_s = visit["end_s"] - visit["start_s"] - visit["downlink_s"] - visit["uplink_s"]
    seconds = np.stack([visit["downlink_s"], rest_s, visit["uplink_s"]], axis=1)
    number = history.column("rounds", "round")
    last = np.full(number.size, -1)
    # The last in this order stays: of those that were back last, the one of the lowest edge.
    order = np.lexsort((-visit["edge"], visit["end_s"]))
    order = order[~np.isnan(visit["round"][order].astype(np.float64))]
    last[np.searchsorted(number, visit["round"][order])] = order
    named, phase = last >= 0, seconds[last].argmax(axis=1) if seconds.size else np.zeros(last.size, dtype=np.int64)
    return pa.table(
        {
            "round": history.rounds.column("round"),
            "duration_s": history.rounds.column("duration_s"),
            "cause": _causes(codes_of(history.rounds.column("ended_by"), ENDS), named, "edge"),
            "edge": pa.array(visit["edge"][last] if seconds.size else last, pa.int32(), mask=~named),
            "phase": pa.array(np.array(["downlink", "edge rounds", "uplink"])[phase], mask=~named),
            "phase_s": pa.array(seconds[last, phase] if seconds.size else np.zeros(last.size), mask=~named),
        }
    )


def _causes(ended_by: IntArray, named: NDArray[np.bool_], who: str) -> NDArray[np.str_]:
    """Return the causes of rounds: who ended those that somebody ended, else what did."""
    enough = ended_by == RoundEnd.ENOUGH
    return np.where(named, who, np.where(enough, "wait", np.array(ENDS)[ended_by]))


def _ended(history: "History", rounds: RoundColumns) -> tuple[IntArray, IntArray]:
    """Return the participations whose updates arrived as a round ended, and the place of that round.

    Of several rounds that ended at that instant it is the one that used the update, or else the first.
    """
    arrived = np.flatnonzero(history.participations.column("cut_in").is_null().to_numpy())
    edge, end_s = edges_of(history)[arrived], history.column("participations", "end_s")[arrived]
    at = rounds.ending_at(edge, end_s)
    served = history.column("participations", "served_round")[arrived].astype(np.float64)
    used = np.flatnonzero((at >= 0) & ~np.isnan(served))
    by = rounds.numbered(edge[used], served[used].astype(np.int64))
    at[used] = np.where(rounds.end_s[by] == rounds.end_s[at[used]], by, at[used])
    return arrived[at >= 0], at[at >= 0]


def _seconds(history: "History") -> FloatArray:
    """Return the seconds of each participation by `SECONDS`, and of the question before it, shape (N, 5)."""
    return np.stack([*(history.column("participations", name) for name in SECONDS), _asked_s(history)], axis=1)


def _asked_s(history: "History") -> FloatArray:
    """Return how long the server asked before it sent each participation, shape (N,); 0 if it did not.

    It is the last question that was over by then, if it was put in the same round or answered at that very instant: the
    round of an asynchronous server may change while it asks. A server, edge or not, puts one question at a time.
    """
    edge, number = edges_of(history), history.column("participations", "round")
    sent_s, asked_s = history.column("participations", "start_s"), np.zeros(number.size)
    if history.probes is None:
        return asked_s
    of_edge, put_s = edges_of(history, "probes"), history.column("probes", "start_s")
    for one in np.unique(of_edge):
        rows, mine = np.flatnonzero(of_edge == one), np.flatnonzero(edge == one)
        start_s, first, question = np.unique(put_s[rows], return_index=True, return_inverse=True)
        end_s = np.full(start_s.size, -np.inf)
        np.maximum.at(end_s, question, history.column("probes", "end_s")[rows])
        last = np.searchsorted(end_s, sent_s[mine], side="right") - 1
        own = history.column("probes", "round")[rows][first][last] == number[mine]
        own = (last >= 0) & (own | (end_s[last] == sent_s[mine]))
        asked_s[mine] = np.where(own, end_s[last] - start_s[last], 0.0)
    return asked_s
