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

from dataclasses import dataclass
from typing import Annotated, Final, Literal

import numpy as np

from fedsim.arrays import BoolArray, FloatArray, IntArray
from fedsim.errors import SelectorError
from fedsim.selectors.contracts import Cohort, OracleView, Reports, RoundView
from fedsim.selectors.in_flight import InFlight
from fedsim.selectors.options import Above0, Count, Range, Share, Whole
from fedsim.selectors.sampling import CohortSelector, grown, lowest, whole
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


@dataclass(eq=False, repr=False)
class ReflSelector(CohortSelector):
    """The common part of both forms of REFL; parameters as of `Refl`. Arrays are over client ids."""

    paper = PAPER

    hold_off: Whole = 5
    adaptive_target: bool = False
    least_share: Share = 0.0
    slot_s: Annotated[Above0[Seconds], Bound(1e-3, LONGEST_S)] | None = None
    initial_s: Above0[Seconds] = 1000.0
    alpha: Share = 0.25

    def __post_init__(self) -> None:
        super().__post_init__()
        self.mu_s, self._round, self._start_s = self.initial_s, 0, 0.0
        self._in_flight = InFlight()
        self._selected: IntArray = np.zeros(0, dtype=np.int64)
        self._since_s: FloatArray = np.zeros(0)
        self._takes_s: FloatArray = np.zeros(0)

    def observe(self, reports: Reports) -> None:
        self.mu_s = (1 - self.alpha) * (reports.time_s - self._start_s) + self.alpha * self.mu_s
        self._in_flight.heard(reports)
        done = reports.client[reports.delivered]
        self._takes_s[done] = reports.duration_s[reports.delivered]
        self._since_s[done[~self._in_flight.mask[done]]] = np.nan

    def meet(self, view: RoundView) -> None:
        """Start a selection: candidates are not in flight."""
        self._selected = grown(self._selected, view.clients, -self.hold_off - 1)
        self._since_s = grown(self._since_s, view.clients, np.nan)
        self._takes_s = grown(self._takes_s, view.clients, np.nan)
        self._in_flight.meet(view)
        self._since_s[view.client] = np.nan
        if view.round != self._round:
            self._round, self._start_s = view.round, view.time_s

    def missed(self, view: RoundView) -> IntArray:
        """Return ids of clients that did not deliver and may be in flight: selected recently, and no candidates."""
        away = ~np.isnan(self._since_s) & ~self._in_flight.mask
        return np.flatnonzero(away & self._held_off(view))

    def due(self, view: RoundView) -> int:
        """Return the number of updates that are expected within mu from now."""
        client = np.concatenate([self._in_flight.client, self.missed(view)])
        known = self._takes_s[~np.isnan(self._takes_s)]
        if not client.size or not known.size:
            return 0
        takes_s = np.where(np.isnan(self._takes_s[client]), known.mean(), self._takes_s[client])
        return int(np.count_nonzero(self._since_s[client] + takes_s <= view.time_s + self.mu_s))

    def slot(self) -> float:
        return self.mu_s if self.slot_s is None else self.slot_s

    def take(self, view: RoundView, rank: FloatArray, rng: np.random.Generator) -> Cohort:
        """Return the candidates of least rank, shape (n,), at most 2; those held off come last, ties at random."""
        size = target(self.cohort_size(view), self.due(view), self.adaptive_target, self.least_share)
        chosen = view.client[lowest(np.where(self._held_off(view)[view.client], 3.0, rank), size, rng)]
        self._in_flight.sent(chosen)
        self._selected[chosen], self._since_s[chosen] = view.round, view.time_s
        return Cohort(np.sort(chosen))

    def _held_off(self, view: RoundView) -> BoolArray:
        """Return which clients were selected in the last ``hold_off`` rounds."""
        return np.asarray(view.round - self._selected <= self.hold_off)


@dataclass(eq=False, repr=False)
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

    periods_s: list[Seconds] | None = None
    harmonics: Annotated[Count, Bound(0, 64)] = 4
    ridge: Above0[float] = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        periods = [86400.0] if self.periods_s is None else self.periods_s
        if not periods:
            raise ValueError("periods_s: [] is not allowed; it must have at least one period, or be left out for a day")
        for period_s in periods:
            Range(0, above=True).check("periods_s", period_s)
        if len(periods) > _MOST_TERMS:
            raise ValueError(f"periods_s: {len(periods)} periods are not allowed; it must have at most {_MOST_TERMS}")
        most = _MOST_TERMS // len(periods)
        if self.harmonics > most:
            allowed = f"at most {most} with {len(periods)} periods, {_MOST_TERMS} terms in all"
            raise ValueError(f"harmonics: {self.harmonics!r} is not allowed; it must be {allowed}")
        self._forecast = SeasonalForecast(periods, self.harmonics, self.ridge)

    def select(self, view: RoundView, rng: np.random.Generator) -> Cohort:
        self.meet(view)
        # Of a client in flight an asynchronous server has no report yet.
        available = np.concatenate([view.client, self._in_flight.client])
        self._forecast.learn(view.time_s, view.clients, available, self.missed(view))
        slot_s = self.slot()
        chance = self._forecast.probability(view.client, view.time_s + slot_s, view.time_s + 2 * slot_s)
        # Equal histories differ by rounding, which would order the same clients first in every round.
        return self.take(view, np.round(chance, _DIGITS), rng)


@dataclass(eq=False, repr=False)
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

    accuracy: Share = 0.9
    rule: Literal["paper", "reference-code"] = "paper"

    def select(self, view: RoundView, rng: np.random.Generator) -> Cohort:
        if not isinstance(view, OracleView) or view.stays is None:
            raise SelectorError("ReflOracle is an oracle: it needs a view with stays")
        self.meet(view)
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
            rank[rng.permutation(group)[int(whole(group.size * self.accuracy)) :]] = 2.0
        return rank
