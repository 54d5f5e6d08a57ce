"""REFL with a noisy oracle instead of forecasts, as in its published code."""

from typing import Annotated, Literal

import numpy as np

from fedsim.arrays import BoolArray, FloatArray
from fedsim.errors import SelectorError
from fedsim.selectors.contracts import Cohort, OracleView, RoundView
from fedsim.selectors.refl.refl import PAPER, ReflSelector
from fedsim.selectors.validation import check_choice, check_shares
from fedsim.units import LONGEST_S, Bound, Seconds


class ReflOracle(ReflSelector):
    """Select the candidates of least future availability, by a noisy oracle.

    Parameters
    ----------
    cohort, hold_off, adaptive_target, least_share, slot_s, initial_s, alpha : as of `fedsim.selectors.refl.refl.Refl`
    accuracy : float in [0, 1]
        Accuracy of the oracle (0.9 in the paper's experiments), see ``rule``.
    rule : ``"paper"`` or ``"reference-code"``
        Paper: a candidate answers whether it will be available from mu to 2 mu from now, wrongly with probability
        ``1 - accuracy``; clients that answer no come first, ties in random order. Code: clients that will be available
        from now to mu and not from mu to 2 mu come first, all others after them; of either group a random share of
        ``accuracy`` is considered.
    """

    paper = PAPER + "; the published code's oracle"
    oracle = True

    def __init__(
        self,
        cohort: int,
        accuracy: float = 0.9,
        rule: Literal["paper", "reference-code"] = "paper",
        hold_off: int = 5,
        adaptive_target: bool = False,
        least_share: float = 0.0,
        slot_s: Annotated[Seconds, Bound(1e-3, LONGEST_S)] | None = None,
        initial_s: Seconds = 1000.0,
        alpha: float = 0.25,
    ) -> None:
        super().__init__(cohort, hold_off, adaptive_target, least_share, slot_s, initial_s, alpha)
        check_shares(accuracy=accuracy)
        check_choice("rule", rule, "paper", "reference-code")
        self.accuracy, self.rule = accuracy, rule

    def select(self, view: RoundView, rng: np.random.Generator) -> Cohort:
        if not isinstance(view, OracleView) or view.stays is None:
            raise SelectorError("ReflOracle is an oracle: it needs a view with stays")
        self._state.meet(view)
        slot_s = np.full(view.client.size, self.slot())
        later = view.stays(slot_s, 2 * slot_s)
        if self.rule == "paper":
            rank = np.where(later ^ (rng.random(later.size) >= self.accuracy), 1.0, 0.0)
        else:
            rank = self._priorities(view.stays(np.zeros(slot_s.size), slot_s) & ~later, rng)
        return self.take(view, rank, rng)

    def _priorities(self, leaves: BoolArray, rng: np.random.Generator) -> FloatArray:
        """Return 0 for clients about to leave, 1 for others and 2 for clients that are not considered; shape (n,)."""
        rank = np.where(leaves, 0.0, 1.0)
        for group in (np.flatnonzero(leaves), np.flatnonzero(~leaves)):
            rank[rng.permutation(group)[int(group.size * self.accuracy) :]] = 2.0
        return rank
