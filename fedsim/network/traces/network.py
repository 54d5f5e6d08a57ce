"""A network whose rates follow measured traces, repeated, each client from an offset of its own on.

Streams: ``trace-rates`` by client, for a random mapping of clients to traces; ``trace-offset`` by client. They are
common to the two directions, so that files with the two directions of the same measurements stay together.
"""

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np

from fedsim.arrays import FloatArray, IntArray
from fedsim.capabilities import MODEL_BITS
from fedsim.clock import Environment
from fedsim.inputs.tables import counted, note
from fedsim.network.contracts import Directions, LinkFacts, Links
from fedsim.network.medium.traced import TracedMedium
from fedsim.network.traces.capacity import Capacities
from fedsim.network.traces.files import RateFile
from fedsim.network.transfers import SharedMedium
from fedsim.per_client import ClientValues, PerClient, Values, at, values_of
from fedsim.registry import Component
from fedsim.run_setup import RunSetup
from fedsim.traces import Mapped
from fedsim.units import SECONDS


class RateTraces(Component):
    """Rates over time from files: tables (CSV, Parquet, NPZ), or packet-delivery files of Mahimahi.

    A file holds one trace or several, each repeated for ever unless its field ``after`` says otherwise. A client
    follows one trace in each direction, from its offset on. A transfer ends where the integral of the rate has risen by
    its bits, exactly, and arrives after the delay.

    Attributes
    ----------
    downlink, uplink : files of the two directions
    sharing : ``"dedicated"``: each client has the rates of its trace to itself
        ``"equal"``: the first trace of each file is the capacity of a cell that all clients share, the same at every
        instant for all transfers in progress; there are no offsets then.
    mapping : how clients get their traces: ``"random"``, ``"sequential"`` in the order of numbers or names, or
        ``"id"``, each client the rows of its own id; by default ``"id"`` where a column ``client`` or ``id`` has them
    offset : instant of its trace at which a client is at time 0: ``"random"``, uniform over the trace, or ``"none"``
    delay_s : propagation delay, one for all or a value for each client
    """

    requires: ClassVar[frozenset[str]] = frozenset({MODEL_BITS})

    downlink: RateFile
    uplink: RateFile
    sharing: Literal["dedicated", "equal"] = "dedicated"
    mapping: Mapped = None
    offset: Literal["random", "none"] = "random"
    delay_s: Annotated[ClientValues, PerClient(ge=0), SECONDS]

    def build(self, run: RunSetup) -> "TraceLinks":
        clients, shared = run.clients, self.sharing == "equal"
        ways = []
        for file, field in ((self.downlink, "network.downlink.path"), (self.uplink, "network.uplink.path")):
            rates, trace = file.of_clients(field, clients, "random" if shared else self.mapping, run.streams)
            offset_s = np.zeros(clients)
            if shared:
                trace = np.zeros(clients, dtype=np.int64)
                what = f"of {rates.traces:,} traces not used: sharing = 'equal' takes the first one"
                counted(f"{field}: {file.path}", rates.traces - 1, what)
            elif self.offset == "random":
                offset_s = rates.length_s[trace] * run.streams.uniform("trace-offset", np.arange(clients))
            ways.append(TracedWay(rates, trace, offset_s))
        down, up = (way.rates.traces for way in ways)
        if not shared and down != up and min(down, up) > 1:
            note(
                "network", f"{down} traces of the downlink, {up} of the uplink: a client's two are of two measurements"
            )
        return TraceLinks(ways[0], ways[1], values_of(self, "delay_s", clients, run.streams, "network"), shared=shared)


@dataclass(frozen=True)
class TracedWay:
    rates: Capacities
    trace: IntArray
    offset_s: FloatArray

    @property
    def mean_bps(self) -> FloatArray:
        return self.rates.mean_bps[self.trace]

    def transfer_s(self, client: IntArray, start_s: FloatArray, bits: float) -> FloatArray:
        """Return the duration of transfers; one that never starts, behind one that never ends, has the mean rate."""
        starts = np.isfinite(start_s)
        begin_s = np.where(starts, start_s, 0.0) + self.offset_s[client]
        took_s = self.rates.transfer_s(self.trace[client], begin_s, bits)
        return np.where(starts, took_s, bits / self.mean_bps[client])


class TraceLinks(Links):
    def __init__(self, downlink: TracedWay, uplink: TracedWay, delay_s: Values, *, shared: bool) -> None:
        self._down, self._up, self._delay_s = downlink, uplink, delay_s
        self.shared = Directions(down=shared, up=shared)

    def open(self, env: Environment) -> SharedMedium:
        clients = self._down.trace.size
        return TracedMedium(
            env, self._down.rates, self._up.rates, np.array(np.broadcast_to(self._delay_s, clients)).tolist()
        )

    def describe(self) -> LinkFacts:
        return LinkFacts(rate_bps=np.stack([self._down.mean_bps, self._up.mean_bps]))

    def downlink_s(self, client: IntArray, draw: int, start_s: FloatArray, bits: float) -> FloatArray:
        return self._down.transfer_s(client, start_s, bits) + at(self._delay_s, client)

    def uplink_s(self, client: IntArray, draw: int, start_s: FloatArray, bits: float) -> FloatArray:
        return self._up.transfer_s(client, start_s, bits) + at(self._delay_s, client)

    def carried_bits(
        self, client: IntArray, draw: int, start_s: FloatArray, elapsed_s: FloatArray, bits: float, *, up: bool
    ) -> FloatArray:
        """Return the bits that the traces have carried; the delay carries nothing more."""
        way = self._up if up else self._down
        begin_s = start_s + way.offset_s[client]
        return np.minimum(way.rates.between_bits(way.trace[client], begin_s, begin_s + elapsed_s), bits)

    def on_air_s(
        self, client: IntArray, draw: int, start_s: FloatArray, elapsed_s: FloatArray, bits: float, *, up: bool
    ) -> FloatArray:
        way = self._up if up else self._down
        begin_s = start_s + way.offset_s[client]
        sending_s = np.minimum(elapsed_s, way.transfer_s(client, start_s, bits))
        return way.rates.between_s(way.trace[client], begin_s, begin_s + sending_s)

    def expected_on_air_s(self, bits: float, *, up: bool) -> FloatArray:
        way = self._up if up else self._down
        rows_s = way.rates.length_s[way.trace]
        carries_s = way.rates.between_s(way.trace, np.zeros(way.trace.size), rows_s)
        return np.asarray(bits / way.mean_bps * carries_s / rows_s)

    def expected_downlink_s(self, bits: float) -> FloatArray:
        """Return a value that is exact for transfers that are long against the trace."""
        return bits / self._down.mean_bps + self._delay_s

    def expected_uplink_s(self, bits: float) -> FloatArray:
        return bits / self._up.mean_bps + self._delay_s
