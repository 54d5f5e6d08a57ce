"""REFL: the clients of least future availability first, by forecasts or, as in its published code, by a noisy oracle.

Abdelmoniem, Sahu, Canini and Fahmy, "REFL: Resource-Efficient Federated Learning", EuroSys 2023. Its other half, the
staleness-aware aggregation, is the late rule ``{ kind = "stale", weight = "deviation" }``, and its deadline the round
policy ``moving-average``.

In REFL every client trains a linear seasonal model (Prophet) of its own charging log and answers with a probability. A
server does not have these logs; it knows the candidates of each selection. A model of the same kind is fitted to this
record of each client: a mean and Fourier terms of the time of day, by ridge regression.

All clients are observed at the same instants, so that they share one matrix of normal equations and have one vector
each. At an instant without knowledge of a client (it is in flight) the observation is the forecast of its own model,
which leaves its coefficients exactly unchanged.
"""

from typing import Annotated, Final, Literal

import numpy as np

from fedsim.arrays import BoolArray, FloatArray, IntArray
from fedsim.errors import SelectorError
from fedsim.selectors.contracts import Cohort, OracleView, Reports, RoundView
from fedsim.selectors.in_flight import InFlight
from fedsim.selectors.sampling import CohortSelector, grown, lowest
from fedsim.selectors.validation import check_choice, check_numbers, check_shares, check_whole_numbers
from fedsim.units import LONGEST_S, Bound, Seconds


class SeasonalForecast:
    """Probabilities of availability, by ridge regression on Fourier terms; 0.5 without observations."""

    def __init__(self, periods_s: list[float], harmonics: int, ridge: float) -> None:
        order = np.arange(1, harmonics + 1)
        self._per_s = np.concatenate([order / period_s for period_s in periods_s])
        terms = 1 + 2 * self._per_s.size
        self._normal = ridge * np.eye(terms)
        self._moment: FloatArray = np.zeros((terms, 0))
        self._last_s = -np.inf

    def learn(self, time_s: float, clients: int, available: IntArray, unknown: IntArray) -> None:
        """Add the observation of an instant; a second one at the same instant is ignored."""
        missing = clients - self._moment.shape[1]
        if missing > 0:
            self._moment = np.pad(self._moment, ((0, 0), (0, missing)))
        if time_s <= self._last_s:
            return
        self._last_s = time_s
        term = self._terms(time_s, time_s)
        seen = np.full(self._moment.shape[1], -0.5)
        seen[available] = 0.5
        seen[unknown] = np.linalg.solve(self._normal, term) @ self._moment[:, unknown]
        for row, factor in enumerate(term.tolist()):
            self._moment[row] += factor * seen
        self._normal += np.outer(term, term)

    def probability(self, client: IntArray, from_s: float, until_s: float) -> FloatArray:
        """Return the mean forecast of each client over a slot in seconds, clipped to [0, 1], shape of ``client``."""
        weight = np.linalg.solve(self._normal, self._terms(from_s, until_s))
        return np.clip(0.5 + (weight @ self._moment)[client], 0.0, 1.0)

    def _terms(self, from_s: float, until_s: float) -> FloatArray:
        """Return the means of 1 and of the Fourier terms over a slot, which may be an instant; shape (terms,)."""
        angle = np.pi * self._per_s * (from_s + until_s)
        damping = np.sinc(self._per_s * (until_s - from_s))
        return np.concatenate([[1.0], damping * np.cos(angle), damping * np.sin(angle)])


class ReflState:
    """Moving average of round durations, and the last participation of each client; arrays are over client ids."""

    def __init__(self, hold_off: int, initial_s: float, alpha: float) -> None:
        self.hold_off, self.mu_s, self.alpha = hold_off, initial_s, alpha
        self._round, self._start_s = 0, 0.0
        self._in_flight = InFlight()
        self._selected: IntArray = np.zeros(0, dtype=np.int64)
        self._since_s: FloatArray = np.zeros(0)
        self._takes_s: FloatArray = np.zeros(0)

    def meet(self, view: RoundView) -> None:
        """Start a selection: candidates are not in flight."""
        self._selected = grown(self._selected, view.clients, -self.hold_off - 1)
        self._since_s = grown(self._since_s, view.clients, np.nan)
        self._takes_s = grown(self._takes_s, view.clients, np.nan)
        self._in_flight.meet(view)
        self._since_s[view.client] = np.nan
        if view.round != self._round:
            self._round, self._start_s = view.round, view.time_s

    @property
    def unreported(self) -> IntArray:
        """Ids of selected clients without a report since, at an asynchronous server."""
        return self._in_flight.client

    def missed(self, view: RoundView) -> IntArray:
        """Return ids of clients that did not deliver and may be in flight: selected recently, and no candidates."""
        away = ~np.isnan(self._since_s) & ~self._in_flight.mask
        return np.flatnonzero(away & (view.round - self._selected <= self.hold_off))

    def held_off(self, view: RoundView) -> BoolArray:
        """Return the mask of candidates that were selected in the last ``hold_off`` rounds, shape (n,)."""
        return np.asarray(view.round - self._selected[view.client] <= self.hold_off)

    def due(self, view: RoundView) -> int:
        """Return the number of updates that are expected within mu from now."""
        client = np.concatenate([self.unreported, self.missed(view)])
        known = self._takes_s[~np.isnan(self._takes_s)]
        if not client.size or not known.size:
            return 0
        takes_s = np.where(np.isnan(self._takes_s[client]), known.mean(), self._takes_s[client])
        return int(np.count_nonzero(self._since_s[client] + takes_s <= view.time_s + self.mu_s))

    def sent(self, client: IntArray, view: RoundView) -> None:
        """Store the selected clients of a round."""
        self._in_flight.sent(client)
        self._selected[client] = view.round
        self._since_s[client] = view.time_s

    def learn(self, reports: Reports) -> None:
        """Store the duration of a round and of its delivered participations."""
        self.mu_s = (1 - self.alpha) * (reports.time_s - self._start_s) + self.alpha * self.mu_s
        self._in_flight.heard(reports)
        done = reports.client[reports.delivered]
        self._takes_s[done] = reports.duration_s[reports.delivered]
        self._since_s[done[~self._in_flight.mask[done]]] = np.nan


def target(size: int, due: int, adaptive: bool, least_share: float) -> int:
    """Return the adaptive participant target ``N - B``, at least 1 and ``least_share`` of N; N if not adaptive."""
    if not adaptive or not size:
        return size
    return max(size - due, round(least_share * size), 1)


_DIGITS: Final = 9
"""Number of decimals to which probabilities are compared."""
_MOST_TERMS: Final = 500
"""Of the forecast over all periods: its matrix has that number squared times four elements."""

PAPER: Final = "Abdelmoniem, Sahu, Canini and Fahmy, REFL: Resource-Efficient Federated Learning, EuroSys 2023"


class ReflSelector(CohortSelector):
    """The common part of both forms of REFL; parameters as of `Refl`."""

    paper = PAPER

    def __init__(
        self,
        cohort: int,
        hold_off: int,
        adaptive_target: bool,
        least_share: float,
        slot_s: float | None,
        initial_s: float,
        alpha: float,
    ) -> None:
        super().__init__(cohort)
        check_whole_numbers(0, hold_off=hold_off)
        check_shares(least_share=least_share, alpha=alpha)
        check_numbers(0, above=True, initial_s=initial_s)
        check_numbers(0, above=True, optional=True, slot_s=slot_s)
        self.hold_off, self.adaptive_target, self.least_share = hold_off, adaptive_target, least_share
        self.slot_s, self.initial_s, self.alpha = slot_s, initial_s, alpha
        self._state = ReflState(hold_off, initial_s, alpha)

    def observe(self, reports: Reports) -> None:
        self._state.learn(reports)

    def slot(self) -> float:
        return self._state.mu_s if self.slot_s is None else self.slot_s

    def take(self, view: RoundView, rank: FloatArray, rng: np.random.Generator) -> Cohort:
        """Return the candidates of least rank, shape (n,), at most 2; those held off come last, ties at random."""
        state = self._state
        size = target(self.cohort_size(view), state.due(view), self.adaptive_target, self.least_share)
        chosen = view.client[lowest(np.where(state.held_off(view), 3.0, rank), size, rng)]
        state.sent(chosen, view)
        return Cohort(np.sort(chosen))


class Refl(ReflSelector):
    """Select the candidates of least forecast availability, by a seasonal model of each client.

    The forecast is a candidate's probability of availability in the slot ``[mu, 2 mu]`` from now, with mu the moving
    average of round durations. The candidates of least probability are selected, ties in random order
    (section 4.1, intelligent participant selection). Clients that took part in the last rounds come last.

    Parameters
    ----------
    cohort : int >= 1
        Number of clients per round (N); all candidates if there are no more than that.
    hold_off : int >= 0
        Number of rounds in which a selected client is not selected again, unless there are too few others (5 in the
        paper's experiments, ``prohibit_reselect`` in the code); then at random.
    adaptive_target : bool
        Adaptive participant target (section 4.1): N minus the number of late updates that are expected within mu. It
        has an effect with the late rule ``stale`` only, as other rules have no late updates.
    least_share : float in [0, 1]
        Least adaptive target as a share of N (0.5 in the code's option); always at least 1 client.
    slot_s : float > 0 or None
        Length of the slot instead of mu, as in the code for a fixed deadline.
    initial_s : float > 0
        mu before the first round (1000 s in the code).
    alpha : float in [0, 1]
        ``mu <- (1 - alpha) duration + alpha mu`` (0.25).
    periods_s : list of floats > 0
        Periods of the forecast in seconds; None for a day. 604800 is a week.
    harmonics : int >= 1
        Number of sine and cosine terms per period (4, as in Prophet for a day); at most 500 over all periods.
    ridge : float > 0
        Weight of the forecast's prior, a constant 0.5, in observations.

    Notes
    -----
    In the paper each client trains the forecaster on its own log of charging from before the run, and answers with its
    probability. Here the server fits the forecaster to the candidates of each selection since the start of the run
    (`SeasonalForecast`). Before the end of the first period selections are nearly random. The published code has no
    forecaster; `ReflOracle` is its rule. Forecasts of a stationary availability are at most as good as its seasons.

    A server cannot distinguish late from dropped clients, and gets no report of late updates: a client that did not
    deliver counts as in flight until it is a candidate again, for at most ``hold_off`` rounds. A client of which an
    asynchronous server has no report yet counts as available.
    """

    communication = "nothing (the paper's: a slot down and a probability up per candidate)"

    def __init__(
        self,
        cohort: int,
        hold_off: int = 5,
        adaptive_target: bool = False,
        least_share: float = 0.0,
        slot_s: Annotated[Seconds, Bound(1e-3, LONGEST_S)] | None = None,
        initial_s: Seconds = 1000.0,
        alpha: float = 0.25,
        periods_s: list[Seconds] | None = None,
        harmonics: Annotated[int, Bound(0, 64)] = 4,
        ridge: float = 1.0,
    ) -> None:
        super().__init__(cohort, hold_off, adaptive_target, least_share, slot_s, initial_s, alpha)
        periods = [86400.0] if periods_s is None else periods_s
        if not periods:
            raise ValueError("periods_s: [] is not allowed; it must have at least one period, or be left out for a day")
        for period_s in periods:
            check_numbers(0, above=True, periods_s=period_s)
        if len(periods) > _MOST_TERMS:
            raise ValueError(f"periods_s: {len(periods)} periods are not allowed; it must have at most {_MOST_TERMS}")
        check_whole_numbers(1, harmonics=harmonics)
        most = _MOST_TERMS // len(periods)
        if harmonics > most:
            allowed = f"at most {most} with {len(periods)} periods, {_MOST_TERMS} terms in all"
            raise ValueError(f"harmonics: {harmonics!r} is not allowed; it must be {allowed}")
        check_numbers(0, above=True, ridge=ridge)
        self.periods_s, self.harmonics, self.ridge = periods_s, harmonics, ridge
        self._forecast = SeasonalForecast(periods, harmonics, ridge)

    def select(self, view: RoundView, rng: np.random.Generator) -> Cohort:
        state = self._state
        state.meet(view)
        available = np.concatenate([view.client, state.unreported])
        self._forecast.learn(view.time_s, view.clients, available, state.missed(view))
        slot_s = self.slot()
        chance = self._forecast.probability(view.client, view.time_s + slot_s, view.time_s + 2 * slot_s)
        # Equal histories differ by rounding, which would order the same clients first in every round.
        return self.take(view, np.round(chance, _DIGITS), rng)


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
