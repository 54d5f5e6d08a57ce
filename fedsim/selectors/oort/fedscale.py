"""Oort as in FedScale's code, with faults corrected.

Source: SymbioticLab/FedScale 7ec441c, thirdparty/oort/oort.py and fedscale/cloud/config_parser.py. The method is that
of `fedsim.selectors.oort.oort`; nearly every rule differs, so that it is a kind of its own.
"""

import math
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from fedsim.arrays import BoolArray, FloatArray, IntArray
from fedsim.selectors.contracts import Cohort, Reports, RoundView
from fedsim.selectors.in_flight import InFlight
from fedsim.selectors.oort.state import OortState, Silent, blacklist, fill_up
from fedsim.selectors.options import AtLeast0, Count, Range, Share
from fedsim.selectors.sampling import CohortSelector, draw_distinct, grown, whole

_FLAT, _SHARP = 0.1, 5.0
"""Relative change of the window's utility: the pacer relaxes up to the first and tightens from the second on."""


@dataclass(eq=False, repr=False)
class OortFedScale(CohortSelector):
    """Exploit by normalised utility within a wide margin, explore by number of samples, pace by percentiles.

    With u a client's statistical utility, q the ``clip`` quantile of u among the candidates (for untried ones u is the
    number of samples), R the round and L the round of the client's last report, its score is

    ``|((min(u, q) - 0.999 u_min) / max(u_max - 0.999 u_min, 1e-4) + sqrt(0.1 ln R / L)) (T / D)^alpha``

    with the last factor for durations D > T. Exploited clients are drawn with probabilities in proportion to the score,
    among those of at least ``cut_off`` times the score of the first one without a place, and always among ten times as
    many clients as there are places.

    Parameters
    ----------
    cohort : int >= 1
        Number of clients per round (K); all candidates if there are no more than that. FedScale selects 1.3 K;
        in fedsim that is part of the round policy.
    alpha : float >= 0
        Exponent of the penalty of slow clients.
    exploration, exploration_decay, exploration_least : floats in [0, 1]
        Share of the cohort that is explored in the first round, its factor before each selection (the first included),
        and its least value.
    threshold, pacer_step, pacer_delta : floats in [0, 100], int >= 1, float >= 0
        T is this percentile of the durations, infinite from 100 on. Every ``pacer_step`` rounds, from twice that number
        on, the mean utility of exploited clients in the last ``pacer_step`` rounds is compared with that of the rounds
        before: a change of at most a tenth adds ``pacer_delta`` to the percentile, a change of at least a factor of
        five subtracts it (down to ``pacer_delta``).
    clip : float in [0, 1]
        Quantile of the utilities at which they are clipped.
    cut_off : float >= 0
        Least score of exploited clients, relative to that of the first client without a place.
    sample_window : float >= 1
        Explored clients are drawn among this many times the number of places, the clients of the most samples (times
        the penalty of slow clients, with declared times), with probabilities in proportion to that product.
    blacklist_after : int >= 1 or None
        Number of selections after which a client is left out; None, as in FedScale, for no limit.
    blacklist_share : float in [0, 1]
        Largest blacklist as a share of the crowd.
    silent : ``"mean"`` or ``"zero"``
        Utility of a client that was tried and has never delivered: the mean of the round's deliveries, or 0.
    samples_per_round : int >= 1 or None
        Largest number of samples that a client trains on in a round (``local_steps * batch_size``); None for all.

    Notes
    -----
    Corrected faults of the code: the score at a rank that may not exist (the last one is taken, as in REFL's copy); a
    fraction of a client on the blacklist; a division by round 0; cohorts smaller than asked for (candidates at random
    fill them). Explored clients of an earlier round were returned again when no untried client was left. Clients of low
    ids were explored first among equal numbers of samples.

    Knowledge that no server has is not used: the code knows the true duration of every client, before its first
    participation and after a late one. Here the duration of an untried client is the declared one (without declaration
    there is no penalty), and that of a late client the time that the server waited. The first cohort is drawn
    uniformly, as in the code. At an asynchronous server, which replaces clients one by one, epsilon decays per cohort
    of selections as per round.
    """

    paper = (
        "Lai, Zhu, Madhyastha and Chowdhury, Oort, OSDI 2021, as in FedScale (Lai et al., FedScale: Benchmarking Model "
        "and System Performance of Federated Learning at Scale, ICML 2022)"
    )
    needs = ("loss_rms",)
    communication = "a number up per update"
    uses_features = True

    alpha: AtLeast0[float] = 2.0
    exploration: Share = 0.9
    exploration_decay: Share = 0.98
    exploration_least: Share = 0.3
    threshold: AtLeast0[float] = 30.0
    pacer_step: Count = 20
    pacer_delta: AtLeast0[float] = 5.0
    clip: Share = 0.9
    cut_off: AtLeast0[float] = 0.05
    sample_window: Annotated[float, Range(1)] = 5.0
    blacklist_after: Count | None = None
    blacklist_share: Share = 0.3
    silent: Silent = "mean"
    samples_per_round: Count | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self._state = OortState(self.silent, self.samples_per_round)
        self._percentile = self.threshold
        self._epsilon = self.exploration
        self._in_flight = InFlight()
        self._exploits: BoolArray = np.zeros(0, dtype=np.bool_)
        self._gained: list[float] = []
        self._gain, self._round = 0.0, 0

    def select(self, view: RoundView, rng: np.random.Generator) -> Cohort:
        self._state.meet(view)
        self._in_flight.meet(view)
        self._exploits = grown(self._exploits, view.clients)
        self._pace(view.round)
        size = self.cohort_size(view)
        places = self._explored(size)
        first = view.client[:0]
        if np.any(self._state.tried):
            chosen, first = self._chosen(view, size, places, rng)
        else:
            chosen = np.sort(rng.permutation(view.client)[:size])
        self._exploits[chosen] = False
        self._exploits[first] = True
        self._in_flight.sent(chosen)
        return Cohort(chosen)

    def _chosen(self, view: RoundView, size: int, places: int, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
        """Return the selected clients, and the exploited ones among them, with ``places`` explored places."""
        tried = self._state.tried[view.client]
        listed = blacklist(view, self.blacklist_after, self.blacklist_share, rng)
        known, untried = np.flatnonzero(tried & ~listed), np.flatnonzero(~tried)
        exploited = min(size - places, known.size)
        explored = min(size - exploited, untried.size)
        first = known[self._exploit(view.client[~listed], view.client[known], exploited, view.round, rng)]
        second = untried[self._explore(view.client[untried], explored, rng)]
        taken = np.concatenate([first, second])
        return view.client[fill_up(taken, size, view.client.size, rng)], view.client[first]

    def observe(self, reports: Reports) -> None:
        self._in_flight.heard(reports)
        gained = self._state.learn(reports)
        mine = self._exploits[reports.client[reports.delivered]]
        self._gain = float(gained[mine].sum() / (np.count_nonzero(mine) + 1e-4))

    def preferred_s(self) -> float:
        """Return T in seconds; infinite from the 100th percentile on, and without a known duration."""
        durations_s = self._durations_s()
        known_s = np.sort(durations_s[np.isfinite(durations_s)])
        if self._percentile >= 100 or not known_s.size:
            return math.inf
        return float(known_s[min(int(whole(known_s.size * self._percentile / 100)), known_s.size - 1)])

    def score(self, candidates: IntArray, client: IntArray, round_: int) -> FloatArray:
        """Return the scores of tried clients, normalised over all candidates of positive utility."""
        state = self._state
        rewards = np.where(state.tried, state.utility, state.batch)[candidates]
        rewards = np.sort(rewards[rewards > 0])
        if not rewards.size:
            rewards = np.zeros(1)
        limit = rewards[min(int(whole(rewards.size * self.clip)), rewards.size - 1)]
        least = 0.999 * rewards[0]
        worth = (np.minimum(state.utility[client], limit) - least) / max(rewards[-1] - least, 1e-4)
        worth += np.sqrt(0.1 * math.log(round_) / state.last_round[client])
        return np.asarray(np.abs(worth * self._penalty(client)))

    def _durations_s(self) -> FloatArray:
        """Return the last duration of every client, or else the declared one, or NaN; shape (K,)."""
        return np.where(self._state.tried, self._state.duration_s, self._state.declared_s)

    def _penalty(self, client: IntArray) -> FloatArray:
        """Return ``(T / D)^alpha`` of clients slower than T, 1 of others; shape of ``client``."""
        duration_s, preferred_s = self._durations_s()[client], self.preferred_s()
        slow = duration_s > preferred_s
        factor = np.ones(client.size)
        factor[slow] = (preferred_s / np.maximum(duration_s[slow], 1e-4)) ** self.alpha
        return factor

    def _explored(self, size: int) -> int:
        """Let epsilon decay, and return the number of explored places among ``size``."""
        share = self._in_flight.share(size)
        self._epsilon = max(self._epsilon * self.exploration_decay**share, self.exploration_least)
        return self._in_flight.whole(size * self._epsilon, share)

    def _pace(self, round_: int) -> None:
        """Adapt the percentile of T to the utility gained by exploitation in the last two windows, once a round."""
        if round_ == self._round:
            return
        self._round = round_
        self._gained.append(self._gain)
        self._gain = 0.0
        step = self.pacer_step
        if round_ < 2 * step or round_ % step:
            return
        before, now = sum(self._gained[-2 * step : -step]), sum(self._gained[-step:])
        if abs(now - before) <= _FLAT * before:
            self._percentile = min(100.0, self._percentile + self.pacer_delta)
        elif abs(now - before) >= _SHARP * before:
            self._percentile = max(self.pacer_delta, self._percentile - self.pacer_delta)

    def _exploit(
        self, candidates: IntArray, client: IntArray, size: int, round_: int, rng: np.random.Generator
    ) -> IntArray:
        """Return the positions of exploited clients among the tried ones, shape (size,)."""
        if not size:
            return np.zeros(0, dtype=np.int64)
        score = self.score(candidates, client, round_)
        order = np.argsort(-score, kind="stable")
        line = self.cut_off * score[order[min(size, order.size - 1)]]
        above = int(np.count_nonzero(score >= line))
        admitted = order[: max(above, min(10 * size + 1, order.size))]
        return admitted[draw_distinct(score[admitted], size, rng)]

    def _explore(self, client: IntArray, size: int, rng: np.random.Generator) -> IntArray:
        """Return the positions of explored clients among the untried ones, ties in random order; shape (size,)."""
        shuffled = rng.permutation(client.size)
        weight = (self._state.batch[client] * self._penalty(client))[shuffled]
        first = np.argsort(-weight, kind="stable")[: int(whole(self.sample_window * size))]
        return np.asarray(shuffled[first[draw_distinct(weight[first], size, rng)]])
