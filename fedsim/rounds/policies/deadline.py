"""Rounds that end when the whole cohort has delivered, or after a fixed time."""

from fedsim.rounds.policies.contracts import WholeCohort
from fedsim.rounds.policies.round import PastRounds
from fedsim.rounds.policies.server_port import ServerTraits
from fedsim.units import Positive, Seconds


class WaitForAll(WholeCohort):
    """The round ends when the slowest selected client has delivered (McMahan et al. 2017, Algorithm 1).

    With clients that drop out such a round never ends, so a scenario with dropout must choose another policy.

    Examples
    --------
    >>> from fedsim import Scenario, simulate
    >>> scenario = Scenario(
    ...     name="four", crowd={"clients": 4}, learning="none", network={"kind": "pause-two-speed", "std_s": 0.0},
    ...     devices={"compute": "zero"}, rounds={"count": 1, "policy": WaitForAll()}, selector="all",
    ... )
    >>> simulate(scenario).column("rounds", "end_s").tolist()  # the four take 0.125, 0.2, 0.8 and 0.9 s
    [0.9]
    """

    @property
    def traits(self) -> ServerTraits:
        return ServerTraits(tolerates_losses=False, remembered_rounds=self._remembers(WaitForAll, 0))


class Deadline(WholeCohort):
    """The round ends when the whole cohort has delivered, at the latest ``deadline_s`` after the cohort was sent.

    Attributes
    ----------
    deadline_s : float > 0
        Seconds from the start of the round, or from the end of the question where the selector asks clients first; an
        upload that ends exactly then counts as delivered.

    Examples
    --------
    >>> from fedsim import Scenario, simulate
    >>> scenario = Scenario(
    ...     name="four", crowd={"clients": 4}, learning="none", network={"kind": "pause-two-speed", "std_s": 0.0},
    ...     devices={"compute": "zero"}, rounds={"count": 1, "policy": Deadline(deadline_s=0.8)}, selector="all",
    ... )
    >>> history = simulate(scenario)  # the four take 0.125, 0.2, 0.8 and 0.9 s
    >>> history.column("rounds", "end_s").tolist(), history.column("participations", "outcome").tolist()
    ([0.8], ['delivered', 'delivered', 'delivered', 'late'])
    """

    deadline_s: Positive[Seconds]

    @property
    def traits(self) -> ServerTraits:
        return ServerTraits(remembered_rounds=self._remembers(Deadline, 0))

    def time_limit_s(self, past: PastRounds) -> float:
        return self.deadline_s
