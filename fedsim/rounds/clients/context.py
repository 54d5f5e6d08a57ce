"""What a client step may know."""

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
    links, compute : times of transfers and of local work
    availability : when each client can be reached and works
    dropout : when a client leaves in the middle of a participation
    workload : bits and samples of a participation
    accountant : what each client has released; None without privacy
    batteries : None where energy is not modelled
    may_leave : whether availability may end in the middle of a participation
    devices_up, links_up : when devices run and clients' links work; None where these never fail
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
