"""What a step of an environment was worth: the facts of a round, and a declared function of them."""

from collections.abc import Callable
from dataclasses import dataclass

from fedsim.bridges.testbed import RoundResult


@dataclass(frozen=True, kw_only=True)
class Step:
    """The facts of one step: a round that was played, or an action that selected no client.

    Attributes
    ----------
    played : the round; None if the action selected no candidate, which costs no simulated time
    seconds : simulated seconds since the step before, waits for candidates included
    accuracy : of the newest evaluation of the model; NaN where nothing is learned
    accuracy_gain : what it has risen by in this step; 0 without a new evaluation, and where nothing is learned
    leakage : largest epsilon that a client has spent so far; 0 without privacy
    leakage_gain : what it has risen by in this step
    selected, delivered : clients that were sent, and those that have delivered in time
    first_deliveries : those of them that deliver for the first time in the run
    target_reached : whether the run has ended with its target
    """

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
    """A reward that is a weighted sum: by default minus the seconds of the round.

    Attributes
    ----------
    second : reward of a simulated second
    accuracy : of a gain of accuracy by 1, from 0 % to 100 %
    epsilon : of a growth of the largest leakage by 1
    delivery : of an update that was delivered in time
    newcomer : of an update that is the first of its client
    target : of the run's target, once
    empty : of an action that selects no candidate

    Examples
    --------
    >>> Weights(second=-0.1, accuracy=10.0, epsilon=-1.0)
    Weights(second=-0.1, accuracy=10.0, epsilon=-1.0, delivery=0.0, newcomer=0.0, target=0.0, empty=-1.0)
    """

    second: float = -1.0
    accuracy: float = 0.0
    epsilon: float = 0.0
    delivery: float = 0.0
    newcomer: float = 0.0
    target: float = 0.0
    empty: float = -1.0

    def __call__(self, step: Step) -> float:
        """Return the reward of a step."""
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
