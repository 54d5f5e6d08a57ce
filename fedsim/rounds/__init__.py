"""The clock: server and client processes, round policies and the history they write."""

from fedsim.rounds.dispatch import World
from fedsim.rounds.history import History, Recorder
from fedsim.rounds.knowledge import Knowledge
from fedsim.rounds.participation import PHASES, OpenRound, Outcome
from fedsim.rounds.policies import POLICIES, Deadline, Policy, WaitForAll
from fedsim.rounds.server import Ending, Progress, Server

__all__ = [
    "PHASES",
    "POLICIES",
    "Deadline",
    "Ending",
    "History",
    "Knowledge",
    "OpenRound",
    "Outcome",
    "Policy",
    "Progress",
    "Recorder",
    "Server",
    "WaitForAll",
    "World",
]
