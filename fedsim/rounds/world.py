"""Everything that the processes of one run meet."""

from dataclasses import dataclass, field
from functools import cached_property

from fedsim.devices import Batteries, ComputeTimes, Dropout, Presence
from fedsim.devices.onoff import Switched
from fedsim.learning import Learner
from fedsim.network import Links
from fedsim.privacy import Ledger
from fedsim.rounds.edges import Hierarchy
from fedsim.rounds.faults import ServerRestart
from fedsim.rounds.knowledge import Knowledge
from fedsim.rounds.late import Cancel, Late
from fedsim.rounds.policies import Policy
from fedsim.rounds.task import Task
from fedsim.selectors import Selector
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
    presence: Presence
    dropout: Dropout
    learner: Learner
    selector: Selector
    policy: Policy
    ledger: Ledger | None
    knowledge: Knowledge
    late: Late = field(default_factory=Cancel)
    minimum_updates: int = 1
    batteries: Batteries | None = None
    may_leave: bool = True
    hierarchy: Hierarchy | None = None
    devices_up: Switched | None = None
    links_up: Switched | None = None
    server_restart: ServerRestart | None = None

    @cached_property
    def task(self) -> Task:
        """What every participation is made of."""
        return Task(self.learner, getattr(self.selector, "needs", ()))
