"""Federated learning on the clock: server and client processes, and the policies that end rounds.

Examples
--------
>>> POLICIES.make({"kind": "deadline", "deadline_s": 30.0}).deadline_s
30.0
>>> LATE.kind_of(Cancel()), "order" in GROUPINGS.kinds()
('cancel', True)
>>> BACKHAULS.option_names("link"), CLOUD_RULES.option_names("asynchronous")
(['rate_bps', 'delay_s'], ['mixing', 'staleness'])
"""

from typing import TYPE_CHECKING

from fedsim.lazy import on_use
from fedsim.rounds.effects.contract import Effect, Limit, Never
from fedsim.rounds.effects.faults.settings import Faults
from fedsim.rounds.effects.kinds import EFFECTS, EffectSettings
from fedsim.rounds.hierarchy.backhaul import BACKHAULS
from fedsim.rounds.hierarchy.cloud_rules import CLOUD_RULES
from fedsim.rounds.hierarchy.grouping import GROUPINGS
from fedsim.rounds.hierarchy.settings import Edges, Hierarchy
from fedsim.rounds.policies.contracts import (
    POLICIES,
    AsynchronousPolicy,
    RoundPolicy,
    SynchronousPolicy,
)
from fedsim.rounds.policies.deadline import Deadline, WaitForAll
from fedsim.rounds.policies.late import LATE, Cancel, LateRule
from fedsim.rounds.policies.round import PastRounds, Round
from fedsim.rounds.policies.server_port import ServerPort, ServerTraits

if TYPE_CHECKING:
    from fedsim.rounds.run import Run
    from fedsim.rounds.server.context import ServerContext
    from fedsim.rounds.server.evaluations import EvaluationPlan
    from fedsim.rounds.server.server import Progress, Server, StoppingCriteria
    from fedsim.rounds.server.view import Knowledge
    from fedsim.rounds.workload import Workload
else:
    __getattr__ = on_use(__name__)

__all__ = [
    "BACKHAULS",
    "CLOUD_RULES",
    "EFFECTS",
    "GROUPINGS",
    "LATE",
    "POLICIES",
    "AsynchronousPolicy",
    "Cancel",
    "Deadline",
    "Edges",
    "Effect",
    "EffectSettings",
    "EvaluationPlan",
    "Faults",
    "Hierarchy",
    "Knowledge",
    "LateRule",
    "Limit",
    "Never",
    "PastRounds",
    "Progress",
    "Round",
    "RoundPolicy",
    "Run",
    "Server",
    "ServerContext",
    "ServerPort",
    "ServerTraits",
    "StoppingCriteria",
    "SynchronousPolicy",
    "WaitForAll",
    "Workload",
]
