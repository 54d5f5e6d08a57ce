"""What a step of a client may know."""

from dataclasses import dataclass

from fedsim.devices import Availability, Batteries, ComputeTimes, Dropout
from fedsim.devices.availability.on_off import OnOffProcess
from fedsim.network import Links
from fedsim.privacy import PrivacyAccountant
from fedsim.rounds.clients.assignment import Workload
from fedsim.streams import Streams


@dataclass(frozen=True, kw_only=True)
class ClientContext:
    """What the participations of one run depend on.

    Attributes
    ----------
    streams : random streams of the run
    links, compute : durations of transfers and of local work
    availability : when each client can be reached and works
    dropout : when a client leaves during a participation
    workload : bits and samples of a participation
    accountant : privacy that each client has spent; None without privacy
    batteries : charges of the clients; None without energy
    may_leave : whether a client's availability may end during a participation
    devices_up, links_up : when devices run and clients' links work; None if they never fail
    """

    streams: Streams
    links: Links
    compute: ComputeTimes
    availability: Availability
    dropout: Dropout
    workload: Workload
    accountant: PrivacyAccountant | None = None
    batteries: Batteries | None = None
    may_leave: bool = True
    devices_up: OnOffProcess | None = None
    links_up: OnOffProcess | None = None
