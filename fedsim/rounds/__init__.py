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
from fedsim.rounds.effects.contract import Effect as Effect, Limit as Limit, Never as Never
from fedsim.rounds.effects.faults.settings import Faults as Faults
from fedsim.rounds.effects.kinds import EFFECTS as EFFECTS, EffectSettings as EffectSettings
from fedsim.rounds.hierarchy.backhaul import BACKHAULS as BACKHAULS
from fedsim.rounds.hierarchy.cloud_rules import CLOUD_RULES as CLOUD_RULES
from fedsim.rounds.hierarchy.grouping import GROUPINGS as GROUPINGS
from fedsim.rounds.hierarchy.settings import Edges as Edges, Hierarchy as Hierarchy
from fedsim.rounds.policies.contracts import (
    POLICIES as POLICIES,
    AsynchronousPolicy as AsynchronousPolicy,
    RoundPolicy as RoundPolicy,
    SynchronousPolicy as SynchronousPolicy,
)
from fedsim.rounds.policies.deadline import Deadline as Deadline, WaitForAll as WaitForAll
from fedsim.rounds.policies.late import LATE as LATE, Cancel as Cancel, LateRule as LateRule
from fedsim.rounds.policies.round import PastRounds as PastRounds, Round as Round
from fedsim.rounds.policies.server_port import ServerPort as ServerPort, ServerTraits as ServerTraits

if TYPE_CHECKING:
    from fedsim.rounds.run import Run as Run
    from fedsim.rounds.server.context import ServerContext as ServerContext
    from fedsim.rounds.server.evaluations import EvaluationPlan as EvaluationPlan
    from fedsim.rounds.server.server import Progress as Progress, Server as Server, StoppingCriteria as StoppingCriteria
    from fedsim.rounds.server.view import Knowledge as Knowledge
    from fedsim.rounds.workload import Workload as Workload
else:
    __getattr__ = on_use(__name__)
