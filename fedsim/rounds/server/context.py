"""What a server step may know."""

from dataclasses import dataclass, field

from fedsim.arrays import FloatArray
from fedsim.devices import Availability
from fedsim.learning import Learner
from fedsim.rounds.clients.context import ClientContext
from fedsim.rounds.faults import ServerRestart
from fedsim.rounds.policies.contracts import RoundPolicy
from fedsim.rounds.policies.late import Cancel, LateRule
from fedsim.rounds.server.knowledge import Knowledge
from fedsim.selectors import SelectorPort
from fedsim.streams import Streams


@dataclass(frozen=True, kw_only=True)
class ServerContext:
    """What the server process of one run depends on.

    Attributes
    ----------
    clients : what its clients' participations depend on
    streams : random streams of this server's own decisions
    availability : of the clients that this server may select
    knowledge : what the server knows of its clients
    late : what becomes of late clients
    minimum_updates : with fewer a round ends without a new model
    expected_duration_s : mean duration of every client's participation, shown to oracles, shape (K,); None for none
    server_restart : when the server crashes; None for never
    """

    clients: ClientContext
    streams: Streams
    availability: Availability
    learner: Learner
    selector: SelectorPort
    policy: RoundPolicy
    knowledge: Knowledge
    late: LateRule = field(default_factory=Cancel)
    minimum_updates: int = 1
    expected_duration_s: FloatArray | None = None
    server_restart: ServerRestart | None = None
