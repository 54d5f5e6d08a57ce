"""REFL with an oracle in place of forecasts, right most of the time, as in its published code."""

from typing import Literal

import numpy as np

from fedsim.arrays import BoolArray, FloatArray
from fedsim.errors import SelectorError
from fedsim.selectors.contracts import Cohort, OracleView, PublishedSelector, Reports, RoundView
from fedsim.selectors.refl.refl import PAPER, check_pace
from fedsim.selectors.refl.state import Pace, target
from fedsim.selectors.sampling import cohort_size, lowest
from fedsim.selectors.validation import check_choice, check_shares


class ReflOracle(PublishedSelector):
    """Intelligent participant selection by who will really be there, spoilt by noise.

    Parameters
    ----------
    cohort, hold_off, adaptive_target, least_share, slot_s, initial_s, alpha : as of `fedsim.selectors.refl.refl.Refl`
    accuracy : float in [0, 1]
        How good the oracle is (0.9 in the paper's experiments), see ``rule``.
    rule : ``"paper"`` or ``"reference-code"``
        Paper: a candidate's answer is whether it will be there from mu to 2 mu from now, wrong with probability
        ``1 - accuracy``; those that answer no come first, ties at random. Code: those that will be there from now to mu
        and not from mu to 2 mu come first, all others after them, and of either group a random share of ``accuracy`` is
        looked at.
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
        slot_s: float | None = None,
        initial_s: float = 1000.0,
        alpha: float = 0.25,
    ) -> None:
        check_pace(cohort, hold_off, least_share, slot_s, initial_s, alpha)
        check_shares(accuracy=accuracy)
        check_choice("rule", rule, "paper", "reference-code")
        self.cohort, self.accuracy, self.rule, self.hold_off = cohort, accuracy, rule, hold_off
        self.adaptive_target, self.least_share = adaptive_target, least_share
        self.slot_s, self.initial_s, self.alpha = slot_s, initial_s, alpha
        self._pace = Pace(hold_off, initial_s, alpha)

    def select(self, view: RoundView, rng: np.random.Generator) -> Cohort:
        """Return those that will leave soon, as far as the oracle is right.

        Raises
        ------
        SelectorError
            If the view is that of a real server, which cannot say who stays.
        """
        if not isinstance(view, OracleView) or view.stays is None:
            raise SelectorError("ReflOracle is an oracle: it needs a view with stays")
        pace = self._pace
        pace.meet(view)
        slot_s = np.full(view.client.size, pace.mu_s if self.slot_s is None else self.slot_s)
        later = view.stays(slot_s, 2 * slot_s)
        if self.rule == "paper":
            rank = np.where(later ^ (rng.random(later.size) >= self.accuracy), 1.0, 0.0)
        else:
            rank = self._priorities(view.stays(np.zeros(slot_s.size), slot_s) & ~later, rng)
        size = target(cohort_size(view, self.cohort), pace.due(view), self.adaptive_target, self.least_share)
        chosen = view.client[lowest(np.where(pace.held_off(view), 3.0, rank), size, rng)]
        pace.sent(chosen, view)
        return Cohort(np.sort(chosen))

    def observe(self, reports: Reports) -> None:
        """Learn how long rounds last, and who is not at work any more."""
        self._pace.learn(reports)

    def _priorities(self, leaves: BoolArray, rng: np.random.Generator) -> FloatArray:
        """Return 0 for those about to leave, 1 for the others and 2 for those of either group not looked at."""
        rank = np.where(leaves, 0.0, 1.0)
        for group in (np.flatnonzero(leaves), np.flatnonzero(~leaves)):
            rank[rng.permutation(group)[int(group.size * self.accuracy) :]] = 2.0
        return rank
