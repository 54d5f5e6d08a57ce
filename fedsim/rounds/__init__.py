"""The clock: server and client processes, round policies and the history they write."""

from fedsim.rounds.backhaul import BACKHAULS
from fedsim.rounds.edge_merging import EDGE_MERGINGS
from fedsim.rounds.edges import GROUPINGS, Edges, Hierarchy
from fedsim.rounds.faults import Faults
from fedsim.rounds.flight import Fate
from fedsim.rounds.history import History
from fedsim.rounds.knowledge import Knowledge
from fedsim.rounds.late import LATE, Cancel, Late
from fedsim.rounds.participation import PHASES, Outcome
from fedsim.rounds.policies import POLICIES, Deadline, Policy, WaitForAll
from fedsim.rounds.profile import Profile
from fedsim.rounds.recorder import Recorder
from fedsim.rounds.round import Round
from fedsim.rounds.server import Ending, Progress, Server
from fedsim.rounds.task import Task
from fedsim.rounds.world import World

__all__ = [
    "BACKHAULS",
    "EDGE_MERGINGS",
    "GROUPINGS",
    "LATE",
    "PHASES",
    "POLICIES",
    "Cancel",
    "Deadline",
    "Edges",
    "Ending",
    "Fate",
    "Faults",
    "Hierarchy",
    "History",
    "Knowledge",
    "Late",
    "Outcome",
    "Policy",
    "Profile",
    "Progress",
    "Recorder",
    "Round",
    "Server",
    "Task",
    "WaitForAll",
    "World",
]
