"""BSFL: bandit scheduling for federated learning, without the privacy term of PAUSE."""

from typing import Literal

from fedsim.selectors.contracts import RoundView
from fedsim.selectors.pause.pause import Pause
from fedsim.selectors.validation import check_choice
from fedsim.units import Seconds


class Bsfl(Pause):
    """Select by the arg max of the smallest UCB plus ``alpha / m`` times the generalisation rewards: PAUSE, gamma 0.

    Parameters
    ----------
    cohort, tau_min_s, alpha, beta, time_index
        As in `fedsim.selectors.pause.energy.PauseEnergy`; alpha is 1 in the published runs.
    confidence : "cohort" or "crowd"
        Factor of log t in the UCB: m + 1, or K as in the first version of the published code.

    Notes
    -----
    In a crowd of which half never delivers, a third of the rounds may be empty at first, as for `CsUcb`: the rewards
    of all those clients are the same, so that they are selected together.
    """

    paper = (
        "Ben Ami, Cohen and Zhao, Client Selection for Generalization in Accelerated Federated Learning: A "
        "Multi-Armed Bandit Approach, IEEE Access 2025"
    )
    may_stall = "clients that never deliver have one index and are selected together, ever more rarely"

    def __init__(
        self,
        cohort: int,
        tau_min_s: Seconds = 0.05,
        alpha: float = 1.0,
        beta: float = 2.0,
        time_index: Literal["paper", "reference-code"] = "paper",
        confidence: Literal["cohort", "crowd"] = "cohort",
    ) -> None:
        super().__init__(cohort, tau_min_s, alpha, beta, gamma=0.0, time_index=time_index)
        check_choice("confidence", confidence, "cohort", "crowd")
        self.confidence = confidence

    def exploration(self, view: RoundView) -> int:
        """Return the factor of log t in the UCB."""
        return view.clients if self.confidence == "crowd" else super().exploration(view)
