"""Oort: exploitation by statistical times system utility, exploration by speed, and a pacer of the duration.

Equation and line numbers are those of the paper's equation (1) and Algorithm 1.
"""

import math
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from fedsim.arrays import FloatArray, IntArray
from fedsim.selectors.contracts import Cohort, Reports, RoundView
from fedsim.selectors.in_flight import InFlight
from fedsim.selectors.oort.state import OortState, Silent, blacklist, fill_up
from fedsim.selectors.options import Above0, AtLeast0, Count, Share
from fedsim.selectors.sampling import CohortSelector, draw_distinct
from fedsim.units import Seconds

_PERCENT: Final = 30
_MORE_PERCENT: Final = 5
"""FedScale's percentile of durations, and the points that each relaxation adds."""


@dataclass(eq=False, repr=False)
class Oort(CohortSelector):
    """Exploit clients of high utility and explore fast ones, by Algorithm 1.

    A client's statistical utility U is ``|B| sqrt(mean of its samples' squared losses)`` of its last delivered update,
    clipped. Its utility in round R is ``(U + sqrt(0.1 ln R / L)) (T / D)^alpha``, the last factor only for D > T
    (equation 1, lines 9 to 12). L is the round of its last participation, D the duration of that, and T the preferred
    duration. A share epsilon of the cohort is explored among clients never tried. The others are drawn, with
    probabilities in proportion to utility, among clients of at least c times the utility of the last one with a place
    (lines 13 to 15). The pacer relaxes T when the utility gained in the last W rounds is below that of the W rounds
    before (lines 7 and 8).

    Parameters
    ----------
    cohort : int >= 1
        Number of clients per round (K); all candidates if there are no more than that. The paper selects 1.3 K
        and takes the first K updates; in fedsim that is part of the round policy.
    alpha : float >= 0
        Exponent of the penalty of slow clients (2 in the paper).
    exploration, exploration_decay, exploration_least : floats in [0, 1]
        epsilon in the first round, its factor per round, and its least value (0.9, 0.98 and 0.2 in the paper).
    window : int >= 1
        W in rounds (20 in the paper).
    pacer_step_s : float > 0 or None
        Delta, the first T and the step by which it is relaxed. None for the rule of ``preferred``.
    preferred : ``"crowd"``, ``"cohorts"`` or ``"percentile"``
        Rule of T. Cohorts: that of the paper's evaluation (section 7.1), by which T covers the W K fastest of the
        clients tried, and W K more after each relaxation; without more clients there is no penalty, so that in a crowd
        of at most W K clients no client is ever slow. Percentile: that of FedScale's code, the 30th percentile of the
        durations of the clients tried, and 5 points more after each relaxation. Crowd: cohorts in a large crowd,
        where W K clients are at most 30 % of it, and percentile in a small one.
    clip : float in (0, 1]
        Quantile of the known utilities at which they are clipped (0.95 in the paper).
    cut_off : float in [0, 1]
        c (0.95 in the paper).
    blacklist_after : int >= 1 or None
        Number of selections after which a client is no longer exploited (10 in the paper's study of outliers); None
        for no limit, as in the published code. In a large crowd few clients are selected as often. In a small one all
        are, and the blacklist holds the most selected clients in turn: among 60 clients with privacy it costs no time,
        and without it Jain's index falls from 0.81 to 0.67 and the largest leakage grows from an epsilon of 51 to one
        of 88 (``scenarios/selector_tables/tables.csv``).
    blacklist_share : float in [0, 1]
        Largest blacklist as a share of the crowd, clients selected most often first. From the published code; without
        it a long run on a small crowd would blacklist all clients.
    by_speed : bool
        Whether explored clients are drawn with probabilities inverse to their declared time of a participation (line
        16), or uniformly. Without declared times the draw is uniform.
    pacer_asked : ``"round"`` or ``"window"``
        Frequency of line 7: each round from 2 W + 1 on as in Algorithm 1, or every W rounds.
    silent : ``"zero"`` or ``"mean"``
        Utility of a client that was tried and has never delivered, which the paper leaves open: 0, or the mean of the
        round's deliveries as in FedScale. Its duration is the time that the server waited.
    samples_per_round : int >= 1 or None
        Largest number of samples that a client trains on in a round, |B|; None for all.

    Notes
    -----
    The duration of a client that did not deliver is censored; FedScale's simulator gives Oort the true duration, which
    no server knows. Without losses (a timing-only run) every sample's loss is 1.

    At an asynchronous server, which replaces clients one by one, epsilon is the share of selections that explore; it
    decays per cohort of selections as per round, and W counts versions of the model.

    Free places without untried candidates go to exploitation, then to candidates on the blacklist at random. Defaults
    of the paper were taken from its published descriptions, not checked against its text.
    """

    paper = (
        "Lai, Zhu, Madhyastha and Chowdhury, Oort: Efficient Federated Learning via Guided Participant Selection, "
        "OSDI 2021"
    )
    needs = ("loss_rms",)
    communication = "a number up per update"
    uses_features = True

    alpha: AtLeast0[float] = 2.0
    exploration: Share = 0.9
    exploration_decay: Share = 0.98
    exploration_least: Share = 0.2
    window: Count = 20
    pacer_step_s: Above0[Seconds] | None = None
    preferred: Literal["crowd", "cohorts", "percentile"] = "crowd"
    clip: Share = 0.95
    cut_off: Share = 0.95
    blacklist_after: Count | None = 10
    blacklist_share: Share = 0.3
    by_speed: bool = True
    pacer_asked: Literal["round", "window"] = "round"
    silent: Silent = "zero"
    samples_per_round: Count | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self._state = OortState(self.silent, self.samples_per_round)
        self._in_flight = InFlight()
        self._gained: list[float] = []
        self._relaxed, self._clients = 0, 0
        self._epsilon = self.exploration

    def select(self, view: RoundView, rng: np.random.Generator) -> Cohort:
        self._state.meet(view)
        self._in_flight.meet(view)
        self._clients = view.clients
        size = self.cohort_size(view)
        tried = self._state.tried[view.client]
        listed = blacklist(view, self.blacklist_after, self.blacklist_share, rng)
        known, untried = np.flatnonzero(tried & ~listed), np.flatnonzero(~tried)
        explored = min(self._explored(size), untried.size)
        exploited = min(size - explored, known.size)
        explored = min(size - exploited, untried.size)
        taken = np.concatenate(
            [
                known[self._exploit(view.client[known], exploited, view.round, rng)],
                untried[draw_distinct(self._speed(view.client[untried]), explored, rng)],
            ]
        )
        chosen = view.client[fill_up(taken, size, view.client.size, rng)]
        self._in_flight.sent(chosen)
        return Cohort(chosen)

    def observe(self, reports: Reports) -> None:
        self._in_flight.heard(reports)
        self._gained.append(float(self._state.learn(reports).sum()))
        self._pace()

    def preferred_s(self) -> float:
        """Return T in seconds; infinite while there is no penalty."""
        if self.pacer_step_s is not None:
            return (1 + self._relaxed) * self.pacer_step_s
        known_s = self._state.duration_s[self._state.tried]
        covered = (1 + self._relaxed) * self.window * self.cohort
        if self.preferred == "percentile" or (self.preferred == "crowd" and not self._large):
            percent = _PERCENT + _MORE_PERCENT * self._relaxed
            covered = max(known_s.size * percent // 100, 1) if percent < 100 else known_s.size
        return math.inf if known_s.size <= covered else float(np.partition(known_s, covered - 1)[covered - 1])

    @property
    def _large(self) -> bool:
        """Whether W K clients are at most 30 % of the crowd."""
        return 100 * self.window * self.cohort <= _PERCENT * self._clients

    def utility(self, client: IntArray, round_: int) -> FloatArray:
        """Return Util of tried clients, with U clipped (lines 9 to 12); shape of ``client``."""
        state = self._state
        limit = np.quantile(state.utility[state.tried], self.clip) if client.size else 0.0
        uncertainty = np.sqrt(0.1 * math.log(round_) / state.last_round[client])
        worth = np.minimum(state.utility[client], limit) + uncertainty
        duration_s, preferred_s = state.duration_s[client], self.preferred_s()
        slow = duration_s > preferred_s
        worth[slow] *= (preferred_s / duration_s[slow]) ** self.alpha
        return np.asarray(worth)

    def _explored(self, size: int) -> int:
        """Return the number of explored places among ``size``, and let epsilon decay."""
        share = self._in_flight.share(size)
        explored = self._in_flight.whole(self._epsilon * size, share)
        self._epsilon = max(self._epsilon * self.exploration_decay**share, self.exploration_least)
        return explored

    def _pace(self) -> None:
        """Relax T if the utility gained in the last window is below that of the window before (lines 7 and 8)."""
        w, rounds = self.window, len(self._gained)
        if rounds >= 2 * w and (self.pacer_asked == "round" or rounds % w == 0):
            self._relaxed += sum(self._gained[-2 * w : -w]) > sum(self._gained[-w:])

    def _exploit(self, client: IntArray, size: int, round_: int, rng: np.random.Generator) -> IntArray:
        """Return the positions of exploited clients (lines 13 to 15), shape (size,)."""
        if not size:
            return np.zeros(0, dtype=np.int64)
        worth = self.utility(client, round_)
        last = np.partition(worth, worth.size - size)[worth.size - size]
        admitted = np.flatnonzero(worth >= self.cut_off * last)
        return admitted[draw_distinct(worth[admitted], size, rng)]

    def _speed(self, client: IntArray) -> FloatArray:
        """Return declared participations per second, 0 without declaration; 1 for all if speed is not used."""
        declared_s = self._state.declared_s[client]
        known = np.isfinite(declared_s)
        if not self.by_speed or not known.any():
            return np.ones(client.size)
        return np.where(known, 1.0 / declared_s, 0.0)
