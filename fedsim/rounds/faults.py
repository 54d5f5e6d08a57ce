"""What breaks while a run goes on: clients crash, links fail and the server restarts.

Each fault is an event on the clock that interrupts whoever is at work then. Clients and links that are idle cost no
event: whether they work is asked when somebody looks at them, and is a function of client and time alone, whoever is
selected. A client that is down, or whose link is, is no candidate.

Beside these there is the trouble of a network that is a graph (`fedsim.network.medium.failures`): there, capacities
fall or
nodes are lost inside the network, what flows slows down, takes another way or waits, and nothing is lost. A link outage
here is the client's own last hop, on any network; a transfer under way is lost with it. Both may happen in one run.

Streams: ``fault-crash-start``, ``fault-outage-start`` by client; ``fault-crash-sojourn``, ``fault-outage-sojourn`` by
(client, number); ``fault-restart`` by number.
"""

import itertools
import math
from collections.abc import Generator, Iterator
from typing import Annotated, Any, Self

from pydantic import Field, PositiveFloat, model_validator
from simpy import Environment, Event, Process

from fedsim.clock import LastOfInstant, tie_s
from fedsim.devices.availability.on_off import MarkovSojourns, Renewal, Sojourn
from fedsim.registry import Settings, refusal
from fedsim.streams import Streams


class ClientCrash(Settings):
    """Devices crash and come back, after exponential times; stationary from time 0.

    A crash in the middle of a task is a dropout at that instant.

    Attributes
    ----------
    mean_up_s, mean_down_s : mean times from a return to the next crash and from a crash to the return
    """

    mean_up_s: Sojourn
    mean_down_s: Sojourn

    def build(self, clients: int, streams: Streams) -> Renewal:
        """Return when each device runs."""
        return Renewal(clients, MarkovSojourns(self.mean_up_s, self.mean_down_s, streams, "fault-crash"))


class LinkOutage(Settings):
    """Clients' links fail and come back, after exponential times; stationary from time 0.

    A transfer under way when its link fails is lost, which is a dropout at that instant. Work goes on; an upload that
    is due while the link is down begins when it is back (its wait counts as ``queue_s``).

    Attributes
    ----------
    mean_up_s, mean_down_s : mean times for which a link works and does not
    """

    mean_up_s: Sojourn
    mean_down_s: Sojourn

    def build(self, clients: int, streams: Streams) -> Renewal:
        """Return when each link works."""
        return Renewal(clients, MarkovSojourns(self.mean_up_s, self.mean_down_s, streams, "fault-outage"))


class ServerRestart(Settings):
    """The server crashes and, after a while, goes on from its last model and all it knows of its clients.

    What is in the air then and what has arrived since the last model are lost: clients at work are cut off, the round
    is over, and nothing comes of it. What happens at the very instant of a crash has still happened.

    Attributes
    ----------
    at_s : when it crashes; either this or the mean is given
    mean_up_s : mean of the exponential time from its start, or its return, to the next crash
    down_s : how long it is down
    """

    at_s: Annotated[tuple[PositiveFloat, ...], Field(min_length=1, strict=False)] | None = None
    mean_up_s: Sojourn | None = None
    down_s: PositiveFloat

    @model_validator(mode="after")
    def _says_when(self) -> Self:
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
        """Return the instants at which it crashes, one after another."""
        if self.mean_up_s is None:
            yield from self.at_s or ()
            return
        up_s = 0.0
        for number in itertools.count():
            crash_s = up_s - self.mean_up_s * math.log1p(-float(streams.uniform("fault-restart", 0, number)))
            yield crash_s
            up_s = crash_s + self.down_s

    def strike(self, env: Environment, server: Process, streams: Streams) -> Generator[Event, Any, None]:
        """Interrupt the server's process at each crash."""
        for crash_s in self.crashes_s(streams):
            # A round that ends at this instant has ended, and the next one has begun.
            yield LastOfInstant(env, max(0.0, crash_s - env.now), after_its_like=True)
            while tied_s := tie_s(env):
                yield LastOfInstant(env, tied_s, after_its_like=True)
            server.interrupt()


class Faults(Settings):
    """What breaks while a run goes on; each part may be left out, and then nothing of its kind breaks.

    Attributes
    ----------
    client_crash, link_outage, server_restart : the kinds of faults
    """

    client_crash: ClientCrash | None = None
    link_outage: LinkOutage | None = None
    server_restart: ServerRestart | None = None

    @property
    def may_lose_clients(self) -> bool:
        """Whether a client may be lost in the middle of a participation; a server that restarts knows that it did."""
        return self.client_crash is not None or self.link_outage is not None
