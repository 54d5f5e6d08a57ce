"""What a step of an environment was worth: the facts of a round, and a declared function of them."""

from collections.abc import Callable
from dataclasses import dataclass

from fedsim.bridges.testbed import RoundResult


@dataclass(frozen=True, kw_only=True)
class Step:
    """The facts of one step: a round that was played, or an action that selected no client."""

    played: RoundResult | None
    seconds: float
    accuracy: float
    accuracy_gain: float
    leakage: float
    leakage_gain: float
    selected: int
    delivered: int
    first_deliveries: int
    target_reached: bool


Reward = Callable[[Step], float]
"""A function of the facts of a step."""


@dataclass(frozen=True, kw_only=True)
class Weights:
    """A reward that is a weighted sum: by default minus the seconds of the round."""

    second: float = -1.0
    accuracy: float = 0.0
    epsilon: float = 0.0
    delivery: float = 0.0
    newcomer: float = 0.0
    target: float = 0.0
    empty: float = -1.0

    def __call__(self, step: Step) -> float:
        if step.played is None:
            return self.empty
        return (
            self.second * step.seconds
            + self.accuracy * step.accuracy_gain
            + self.epsilon * step.leakage_gain
            + self.delivery * step.delivered
            + self.newcomer * step.first_deliveries
            + self.target * step.target_reached
        )
