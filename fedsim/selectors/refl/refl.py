"""REFL: those first who will be there least.

Abdelmoniem, Sahu, Canini and Fahmy, "REFL: Resource-Efficient Federated Learning", EuroSys 2023. Its other half, the
staleness-aware aggregation, is the late rule ``{ kind = "stale", weight = "deviation" }``, and its deadline the round
policy ``moving-average``.
"""

from typing import Final

import numpy as np

from fedsim.selectors.contracts import Cohort, PublishedSelector, Reports, RoundView
from fedsim.selectors.refl.forecast import SeasonalForecast
from fedsim.selectors.refl.state import Pace, target
from fedsim.selectors.sampling import cohort_size, lowest
from fedsim.selectors.validation import check_numbers, check_shares, check_whole_numbers

_DIGITS: Final = 9
"""Decimals of a probability that count."""

PAPER: Final = "Abdelmoniem, Sahu, Canini and Fahmy, REFL: Resource-Efficient Federated Learning, EuroSys 2023"


class Refl(PublishedSelector):
    """Intelligent participant selection with a seasonal forecast for each client.

    A candidate's probability of being there in the slot ``[mu, 2 mu]`` from now is forecast, mu being the moving
    average of round durations; the least probable are selected, ties at random (section 4.1). Clients that took part
    in the last rounds wait.

    Parameters
    ----------
    cohort : int >= 1
        Number of clients per round (N); all candidates if there are no more than that.
    hold_off : int >= 0
        A client that was selected is not selected again for so many rounds, unless there are too few others (5 in
        the paper's experiments, ``prohibit_reselect`` in the code); then at random.
    adaptive_target : bool
        Adaptive participant target (section 4.1): N minus the number of late updates that are expected within mu. Of
        use with the late rule ``stale`` only, as no late update ever comes otherwise.
    least_share : float in [0, 1]
        The adaptive target is at least this share of N (0.5 in the code's option); always at least 1.
    slot_s : float > 0 or None
        Length of the slot in place of mu, as the code has it where the deadline is fixed.
    initial_s : float > 0
        mu before the first round (1000 s in the code).
    alpha : float in [0, 1]
        ``mu <- (1 - alpha) duration + alpha mu`` (0.25).
    periods_s : list of floats > 0
        Periods of the forecast in seconds; a day. Add 604800 for weekly ones.
    harmonics : int >= 1
        Sine and cosine terms per period (4, as Prophet has for a day).
    ridge : float > 0
        Weight of the forecast's prior, 0.5 at all times, in observations.

    Notes
    -----
    In the paper each client trains the forecaster on its own log of charging, kept before learning began, and is
    asked for its probability. Here the server fits it to what it has seen: who was a candidate at each selection, since
    the run began (`SeasonalForecast`). Before a period has passed it knows little, and selects nearly at random. The
    published code has no forecaster; see `ReflOracle` for what it does. Forecasts of a simulator's stationary
    availability can only be as good as its seasons.

    A server cannot tell late from dropped, and is not told when a late update comes: a client that did not deliver
    counts as being at work until it is a candidate again, for at most ``hold_off`` rounds. One of which an asynchronous
    server has not heard yet counts as there.
    """

    paper = PAPER
    communication = "nothing (the paper's: a slot down and a probability up per candidate)"

    def __init__(
        self,
        cohort: int,
        hold_off: int = 5,
        adaptive_target: bool = False,
        least_share: float = 0.0,
        slot_s: float | None = None,
        initial_s: float = 1000.0,
        alpha: float = 0.25,
        periods_s: list[float] | None = None,
        harmonics: int = 4,
        ridge: float = 1.0,
    ) -> None:
        check_pace(cohort, hold_off, least_share, slot_s, initial_s, alpha)
        periods = [86400.0] if periods_s is None else periods_s
        if not periods:
            raise ValueError("periods_s: [] is not allowed; it must have at least one period, or be left out for a day")
        for period_s in periods:
            check_numbers(0, above=True, periods_s=period_s)
        check_whole_numbers(1, harmonics=harmonics)
        check_numbers(0, above=True, ridge=ridge)
        self.cohort, self.hold_off = cohort, hold_off
        self.adaptive_target, self.least_share = adaptive_target, least_share
        self.slot_s, self.initial_s, self.alpha = slot_s, initial_s, alpha
        self.periods_s, self.harmonics, self.ridge = periods_s, harmonics, ridge
        self._pace = Pace(hold_off, initial_s, alpha)
        self._forecast = SeasonalForecast(periods, harmonics, ridge)

    def select(self, view: RoundView, rng: np.random.Generator) -> Cohort:
        """Return the candidates that will least probably be there in the next slot but one."""
        pace = self._pace
        pace.meet(view)
        there = np.concatenate([view.client, pace.not_heard_of])
        self._forecast.learn(view.time_s, view.clients, there, pace.missed(view))
        slot_s = pace.mu_s if self.slot_s is None else self.slot_s
        chance = self._forecast.probability(view.client, view.time_s + slot_s, view.time_s + 2 * slot_s)
        # Equal histories differ by rounding, which would put the same clients first in every round.
        chance = np.round(chance, _DIGITS)
        size = target(cohort_size(view, self.cohort), pace.due(view), self.adaptive_target, self.least_share)
        chosen = view.client[lowest(np.where(pace.held_off(view), 2.0, chance), size, rng)]
        pace.sent(chosen, view)
        return Cohort(np.sort(chosen))

    def observe(self, reports: Reports) -> None:
        """Learn how long rounds last, and who is not at work any more."""
        self._pace.learn(reports)


def check_pace(
    cohort: int, hold_off: int, least_share: float, slot_s: float | None, initial_s: float, alpha: float
) -> None:
    """Refuse options of either form of REFL that are out of range."""
    check_whole_numbers(1, cohort=cohort)
    check_whole_numbers(0, hold_off=hold_off)
    check_shares(least_share=least_share, alpha=alpha)
    check_numbers(0, above=True, initial_s=initial_s)
    check_numbers(0, above=True, optional=True, slot_s=slot_s)
