"""The transfers of a finished run as columns: when each began, its bits, and when it ended."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from fedsim.arrays import BoolArray, FloatArray, IntArray
from fedsim.errors import RunError
from fedsim.history import History
from fedsim.history.outcomes import PHASES

_DOWNLINK: Final = PHASES[0]
_TABLES: Final[tuple[Literal["participations", "probes"], ...]] = ("participations", "probes")


@dataclass(frozen=True)
class Flows:
    """Transfers between the server and clients, in the order of their starts; columns of shape (n,)."""

    round: IntArray
    client: IntArray
    up: BoolArray
    start_s: FloatArray
    end_s: FloatArray
    bits: FloatArray
    whole: BoolArray

    def taken(self, chosen: NDArray[Any]) -> "Flows":
        return Flows(**{name: column[chosen] for name, column in vars(self).items()})


def flows_of(history: History, rounds: tuple[int, int] | None = None) -> Flows:
    """Return the transfers of a run: models, updates, and questions to clients with their answers."""
    flows = _joined([_of_table(history, table) for table in _TABLES if table in history.tables()])
    flows = flows.taken(np.lexsort((flows.client, flows.up, flows.start_s)))
    if rounds is not None:
        flows = _within(flows, rounds, history.name)
    if not flows.bits.size:
        raise RunError(f"{history.name}: there are no transfers with bits in these rounds to replay")
    return flows


def _of_table(history: History, table: Literal["participations", "probes"]) -> Flows:
    names = ("round", "client", "start_s", "end_s", "downlink_s", "compute_s", "queue_s")
    column = {name: history.column(table, name) for name in names}
    if np.any(column["queue_s"] > 0):
        raise RunError(f"{history.name}: {table} has waits in queues; transfers over a graph have none")
    cut_in = history.column(table, "cut_in")
    down_bits, up_bits = history.column(table, "downlink_bits"), history.column(table, "uplink_bits")
    received_s = column["start_s"] + column["downlink_s"]
    uploads_s = received_s + column["compute_s"]
    ways = [
        (False, column["start_s"], received_s, down_bits, cut_in != _DOWNLINK),
        (True, uploads_s, column["end_s"], up_bits, ~np.isin(cut_in, PHASES)),
    ]
    return _joined(
        [
            Flows(column["round"], column["client"], np.full(bits.size, up), start_s, end_s, bits, whole).taken(
                bits > 0
            )
            for up, start_s, end_s, bits, whole in ways
        ]
    )


def _joined(parts: Sequence[Flows]) -> Flows:
    return Flows(**{name: np.concatenate([vars(part)[name] for part in parts]) for name in vars(parts[0])})


def _within(flows: Flows, rounds: tuple[int, int], name: str) -> Flows:
    first, last = rounds
    chosen = (flows.round >= first) & (flows.round <= last)
    if not chosen.any():
        return flows.taken(chosen)
    begins_s, ends_s = flows.start_s[chosen].min(), flows.end_s[chosen].max()
    beside = ~chosen & (flows.start_s < ends_s) & (flows.end_s > begins_s)
    if beside.any():
        raise RunError(
            f"{name}: rounds {first} to {last} cannot be replayed alone: transfers of round "
            f"{int(flows.round[beside][0])} share the network with theirs; allowed: all rounds (rounds = None)"
        )
    return flows.taken(chosen)
