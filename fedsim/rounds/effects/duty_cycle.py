"""A duty cycle: a client may transmit a share of the time, as in unlicensed bands."""

from typing import Annotated

import numpy as np
from pydantic import Field

from fedsim.arrays import FloatArray, IntArray
from fedsim.history.outcomes import UPLINK
from fedsim.rounds.effects.contract import Effect, Members
from fedsim.rounds.effects.kinds import EffectSettings
from fedsim.rounds.plan import Plan
from fedsim.run_setup import RunSetup


class DutyCycle(EffectSettings):
    """After a message up of t seconds, a client is silent for ``t (1 - share) / share`` seconds.

    The limit is that of ETSI EN 300 220-1 for unlicensed bands below 1 GHz, by default that of most sub-bands at
    868 MHz, 1 %. A message that is due during the silence waits for its end, which costs no energy. Set-up counts as
    sending.

    Attributes
    ----------
    share : share of the time in which a client may send
    """

    share: Annotated[float, Field(gt=0, le=1)] = 0.01

    def build(self, run: RunSetup) -> Effect:
        return _Silences(self.share, run.clients)


class _Silences(Effect):
    phases = frozenset({UPLINK})
    may_end = False

    def __init__(self, share: float, clients: int) -> None:
        self._silence = (1.0 - share) / share
        self._until_s = np.zeros(clients)

    def wait_s(self, plan: Plan, phase: int, members: Members) -> tuple[FloatArray, float]:
        until_s: FloatArray = self._until_s[plan.client[members]]
        return np.maximum(0.0, until_s - plan.flows_s(phase, members)), 0.0

    def settle(self, plan: Plan, members: IntArray) -> None:
        client = plan.client[members]
        silent_s = plan.end_s[members] + self._silence * plan.spent_s[UPLINK, members]
        self._until_s[client] = np.fmax(self._until_s[client], silent_s)
