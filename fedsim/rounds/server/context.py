"""Everything that the processes of one run meet."""

from dataclasses import dataclass, field
from functools import cached_property

from fedsim.devices import Availability, Batteries, ComputeTimes, Dropout
from fedsim.devices.availability.on_off import OnOffProcess
from fedsim.learning import Learner
from fedsim.network import Links
from fedsim.privacy import PrivacyAccountant
from fedsim.rounds.clients.assignment import Workload
from fedsim.rounds.faults import ServerRestart
from fedsim.rounds.hierarchy.settings import Hierarchy
from fedsim.rounds.policies.contracts import RoundPolicy
from fedsim.rounds.policies.late import Cancel, LateRule
from fedsim.rounds.server.knowledge import Knowledge
from fedsim.selectors import SelectorPort
from fedsim.streams import Streams


@dataclass(frozen=True, kw_only=True)
class World:
    """Everything a server process meets in one run.

    Attributes
    ----------
    late : what becomes of late clients
    minimum_updates : with fewer a round ends without a new model
    batteries : None where energy is not looked at
    may_leave : whether presence may end in the middle of a participation
    hierarchy : edge servers between the clients and the server; None for a flat federation
    devices_up, links_up : when the devices run and the clients' links work; None where nothing of the kind breaks
    server_restart : when the server crashes; None for never
    """

    streams: Streams
    links: Links
    compute: ComputeTimes
    presence: Availability
    dropout: Dropout
    learner: Learner
    selector: SelectorPort
    policy: RoundPolicy
    ledger: PrivacyAccountant | None
    knowledge: Knowledge
    late: LateRule = field(default_factory=Cancel)
    minimum_updates: int = 1
    batteries: Batteries | None = None
    may_leave: bool = True
    hierarchy: Hierarchy | None = None
    devices_up: OnOffProcess | None = None
    links_up: OnOffProcess | None = None
    server_restart: ServerRestart | None = None

    @cached_property
    def task(self) -> Workload:
        """What every participation is made of."""
        return Workload(self.learner, self.selector.needs)
