"""The policy of a scenario under a ServerApp: timeouts end a round too, and so do nodes that are known to be lost."""

import math
from collections.abc import Generator
from typing import Annotated, Any, ClassVar, Final

import numpy as np
from pydantic import PrivateAttr

from fedsim.clock import Event, LastOfInstant
from fedsim.errors import ScenarioError
from fedsim.inputs.bounds import LATEST_S
from fedsim.registry import Slot
from fedsim.rounds.policies.contracts import POLICIES, RoundPolicy, SynchronousPolicy
from fedsim.rounds.policies.deadline import WaitForAll
from fedsim.rounds.policies.round import PastRounds, Round
from fedsim.rounds.policies.server_port import ServerTraits
from fedsim.units import Positive, Seconds

NOTICED_AFTER_S: Final = 60.0
"""Seconds of silence after which Flower takes a node for lost: twice its 30 s between two heartbeats."""


class UntilTimeout(SynchronousPolicy):
    """A round ends as another policy says, after a timeout, or once every node has answered or is known to be lost."""

    takes_ties: ClassVar[bool] = True
    policy: Annotated[RoundPolicy, Slot(POLICIES)]
    noticed_after_s: Positive[Seconds] = NOTICED_AFTER_S
    _wait: list[tuple[float, bool]] = PrivateAttr(default_factory=lambda: [(math.inf, False)])

    def wait_at_most(self, timeout_s: float, *, to_first: bool) -> None:
        """Let the next round end after a timeout, or with its first reply."""
        self._wait[0] = timeout_s, to_first

    @property
    def of_scenario(self) -> SynchronousPolicy:
        """The policy of the scenario; refuse one that is not for one cohort a round."""
        if isinstance(self.policy, SynchronousPolicy):
            return self.policy
        raise ScenarioError(
            f"rounds.policy: {POLICIES.kind_of(self.policy)} does not wait for one cohort a round, as a ServerApp's "
            "send_and_receive does; allowed: wait-for-all, deadline, k-fastest, quorum and the like"
        )

    @property
    def waits_for_all(self) -> bool:
        return isinstance(self.policy, WaitForAll)

    @property
    def traits(self) -> ServerTraits:
        """Those of the scenario's policy, with the cohorts of the ServerApp; losses end a round when they are known."""
        return ServerTraits(remembered_rounds=self.of_scenario.traits.remembered_rounds)

    def time_limit_s(self, past: PastRounds) -> float:
        return self.of_scenario.time_limit_s(past)

    def enough(self, round_: Round) -> Event:
        timeout_s, to_first = self._wait[0]
        enough = round_.delivered(1) if to_first else self.of_scenario.enough(round_)
        ends = [enough, round_.env.process(self._all_known(round_))]
        if timeout_s < math.inf:
            ends.append(round_.limit(timeout_s))
        return round_.env.any_of(ends)

    def _all_known(self, round_: Round) -> Generator[Event, Any, None]:
        """Wait until every client of a round has delivered or is known to be lost."""
        env, run = round_.env, round_.cohort_run
        if run is None:
            return
        members = run.participations
        while True:
            lost_s = members.ended_s[members.ended & ~members.arrived]
            unknown_s = lost_s[lost_s + self.noticed_after_s > env.now]
            if members.ended.all() and not unknown_s.size:
                return
            if env.peek() >= LATEST_S:
                # Nothing will happen any more: to look again and again would hide that the round waits in vain.
                yield env.event()
            next_s = float(np.min(unknown_s, initial=env.now)) + self.noticed_after_s
            yield LastOfInstant(env, max(0.0, next_s - env.now))
