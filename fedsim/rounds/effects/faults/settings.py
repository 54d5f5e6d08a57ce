"""Faults during a run: clients crash, clients' links fail, and the server restarts.

Each fault is an event on the clock that interrupts the processes it concerns. Idle clients and links cost no event:
whether they work is evaluated when needed, and is a function of client and time alone, whatever the selection. A client
that is down, or whose link is down, is no candidate.

A network of kind ``graph`` has failures of its own (`fedsim.network.medium.failures`): capacities fall or nodes are
lost inside the network, and transfers slow down, take another route or wait; none is lost. A link outage here is the
client's own last hop, on any network; a transfer in progress is lost. Both may happen in one run.

Streams: ``fault-crash-start``, ``fault-outage-start`` by client; ``fault-crash-sojourn``, ``fault-outage-sojourn`` by
(client, number); ``fault-restart`` by number.
"""

import itertools
import math
from collections.abc import Generator, Iterator, Sequence
from typing import Annotated, Any, Final, Self

from pydantic import Field, model_validator
from simpy import Environment, Event, Process

from fedsim.clock import LastOfInstant, tie_s
from fedsim.devices.availability.on_off import MarkovSojourns, Renewal, Sojourn
from fedsim.registry import Settings, refusal
from fedsim.rounds.effects.contract import Effect
from fedsim.rounds.effects.faults.outages import Outages
from fedsim.rounds.effects.leaving import Crashes
from fedsim.rounds.run import Run
from fedsim.run_setup import RunSetup
from fedsim.streams import Streams
from fedsim.units import Positive, Seconds

SERVER_CRASH: Final = "the server crashes"
"""Cause of the interrupt that a crash is, by which it differs from one that something else raises."""


class ClientCrash(Settings):
    """Crashes of devices, with exponential times up and down; stationary from time 0.

    A crash during a participation is a dropout at that instant.

    Attributes
    ----------
    mean_up_s, mean_down_s : mean seconds from a return to the next crash, and from a crash to the return
    """

    mean_up_s: Sojourn
    mean_down_s: Sojourn

    def build(self, run: RunSetup) -> Renewal:
        return Renewal(run.clients, MarkovSojourns(self.mean_up_s, self.mean_down_s, run.streams, "fault-crash"))


class LinkOutage(Settings):
    """Outages of clients' links, with exponential times up and down; stationary from time 0.

    A transfer in progress is lost with its link, which is a dropout at that instant. Work goes on; an upload that is
    due during an outage starts after it, and its wait counts as ``queue_s``.

    Attributes
    ----------
    mean_up_s, mean_down_s : mean seconds for which a link works, and for which it does not
    """

    mean_up_s: Sojourn
    mean_down_s: Sojourn

    def build(self, run: RunSetup) -> Renewal:
        return Renewal(run.clients, MarkovSojourns(self.mean_up_s, self.mean_down_s, run.streams, "fault-outage"))


class ServerRestart(Settings):
    """Crashes of the server, which continues later from its last model and its knowledge of the clients.

    A crash cancels the clients in flight, discards the updates that have arrived since the last model, and ends the
    round without a new model. Events at the instant of the crash come before it.

    Attributes
    ----------
    at_s : instants of the crashes; either these or the mean are given
    mean_up_s : mean of the exponential seconds from the start, or a return, to the next crash
    down_s : seconds from a crash to the return
    """

    at_s: Annotated[tuple[Positive[Seconds], ...], Field(min_length=1, strict=False)] | None = None
    mean_up_s: Sojourn | None = None
    down_s: Positive[Seconds]

    @model_validator(mode="after")
    def _has_instants(self) -> Self:
        if (self.at_s is None) == (self.mean_up_s is None):
            raise refusal("when", "a server restart needs either at_s or mean_up_s")
        for crash_s, next_s in itertools.pairwise(self.at_s or ()):
            if next_s <= crash_s + self.down_s:
                raise refusal(
                    "still_down",
                    "at_s: {next_s} is not after the return from the crash at {crash_s} s; allowed: ascending "
                    "instants more than down_s = {down_s} s apart",
                    next_s=next_s,
                    crash_s=crash_s,
                    down_s=self.down_s,
                )
        return self

    def crashes_s(self, streams: Streams) -> Iterator[float]:
        if self.mean_up_s is None:
            yield from self.at_s or ()
            return
        up_s = 0.0
        for number in itertools.count():
            crash_s = up_s - self.mean_up_s * math.log1p(-float(streams.uniform("fault-restart", 0, number)))
            yield crash_s
            up_s = crash_s + self.down_s

    def interrupt(self, env: Environment, server: Process, streams: Streams) -> Generator[Event, Any, None]:
        for crash_s in self.crashes_s(streams):
            # A round that ends at the instant of a crash ends before it, and the next one begins before it.
            yield LastOfInstant(env, max(0.0, crash_s - env.now), place=1)
            while tied_s := tie_s(env):
                yield LastOfInstant(env, tied_s, place=1)
            server.interrupt(SERVER_CRASH)


class Faults(Settings):
    """The faults of a scenario.

    Attributes
    ----------
    client_crash, link_outage, server_restart : each kind of fault; None for none
    """

    client_crash: ClientCrash | None = None
    link_outage: LinkOutage | None = None
    server_restart: ServerRestart | None = None

    @property
    def may_lose_clients(self) -> bool:
        """Whether a client may be lost during a participation; a server that restarts knows that it did."""
        return any((self.client_crash, self.link_outage))

    def effects(self, run: Run) -> Sequence[Effect]:
        outages = [Outages(law.build(run)) for law in (self.link_outage,) if law]
        return [*outages, *(Crashes(law.build(run)) for law in (self.client_crash,) if law)]
