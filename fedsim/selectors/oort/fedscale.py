"""Oort as FedScale runs it, without the faults of that code.

Source: SymbioticLab/FedScale 7ec441c, thirdparty/oort/oort.py and fedscale/cloud/config_parser.py. The method is that
of `fedsim.selectors.oort.oort`; this form differs in nearly every rule, which is why it is a kind of its own.
"""

import math

import numpy as np

from fedsim.arrays import BoolArray, FloatArray, IntArray
from fedsim.selectors.contracts import Cohort, PublishedSelector, Reports, RoundView, cohort_size
from fedsim.selectors.in_flight import InFlight
from fedsim.selectors.oort.state import OortState, Silent, blacklist, fill_up
from fedsim.selectors.sampling import draw_distinct
from fedsim.selectors.validation import check_choice, check_numbers, check_shares, check_wholes

_FLAT, _SHARP = 0.1, 5.0
"""Relative change of the window's utility at most at which the pacer relaxes, and from which on it tightens."""


class OortFedScale(PublishedSelector):
    """Exploit by normalised utility within a wide margin, explore by number of samples, pace by percentiles.

    With u a client's statistical utility, q their ``clip`` quantile among the candidates (untried ones count with their
    number of samples), R the round and L the round of the client's last report, its score is

    ``|((min(u, q) - 0.999 u_min) / max(u_max - 0.999 u_min, 1e-4) + sqrt(0.1 ln R / L)) (T / D)^alpha``

    the last factor where its duration D is longer than T. A client is exploited with probabilities that follow the
    score, among those with at least ``cut_off`` times the score of the first that would have no place, and always among
    ten times as many as there are places.

    Parameters
    ----------
    cohort : int >= 1
        Number of clients per round (K); all candidates if there are no more than that. FedScale asks for 1.3 K: that is
        the round policy's business here.
    alpha : float >= 0
        Penalty of being slow.
    exploration, exploration_decay, exploration_least : floats in [0, 1]
        Share of the cohort that is explored; it decays before each selection, the first included.
    threshold, pacer_step, pacer_delta : floats in [0, 100], int >= 1, float >= 0
        T is this percentile of the durations, and without limit from 100 on. Every ``pacer_step`` rounds, from
        twice as many on, the mean utility of exploited clients in the last ``pacer_step`` rounds is compared with the
        ones before: a change by at most a tenth adds ``pacer_delta`` to the percentile, one by at least five times
        takes it away (down to ``pacer_delta``).
    clip : float in [0, 1]
    cut_off : float >= 0
    sample_window : float >= 1
        Explored clients are drawn among so many times as many as there are places, those with the most samples (times
        the same penalty of being slow, by what they declare), with probabilities that follow it.
    blacklist_after : int >= 1 or None
        Clients selected more often than that are left out; None, as in FedScale, for nobody.
    blacklist_share : float in [0, 1]
        Most of the crowd that may be on the blacklist.
    silent : ``"mean"`` or ``"zero"``
        Utility of a client that was tried and has never delivered: the mean of the round's delivered ones, or none.
    samples_per_round : int >= 1 or None
        Most samples that a client looks at in a round (``local_steps * batch_size``); None for all it has.

    Notes
    -----
    Faults of the code that are not kept: the score at a rank that may not exist (the last one is taken, as in REFL's
    copy), a fraction of a client on the blacklist, explored clients of an earlier round returned again when nobody is
    left to explore, a division by round 0, cohorts smaller than asked for (candidates at random fill them), and clients
    of low ids explored first where all have equally many samples.

    Knowledge that no server has is not used: the code knows every client's true duration beforehand and after it was
    late. Here it is what an untried client declares (nothing is held against one that does not), and for a late one the
    time the server waited. The first cohort is drawn uniformly, as there. At an asynchronous server, which replaces
    clients one by one, epsilon decays as much in a whole cohort of questions as in a round.
    """

    paper = (
        "Lai, Zhu, Madhyastha and Chowdhury, Oort, OSDI 2021, as in FedScale (Lai et al., FedScale: Benchmarking Model "
        "and System Performance of Federated Learning at Scale, ICML 2022)"
    )
    needs = ("loss_rms",)
    communication = "a number up per update"
    uses_features = True

    def __init__(
        self,
        cohort: int,
        alpha: float = 2.0,
        exploration: float = 0.9,
        exploration_decay: float = 0.98,
        exploration_least: float = 0.3,
        threshold: float = 30.0,
        pacer_step: int = 20,
        pacer_delta: float = 5.0,
        clip: float = 0.9,
        cut_off: float = 0.05,
        sample_window: float = 5.0,
        blacklist_after: int | None = None,
        blacklist_share: float = 0.3,
        silent: Silent = "mean",
        samples_per_round: int | None = None,
    ) -> None:
        check_wholes(1, cohort=cohort, pacer_step=pacer_step)
        check_wholes(1, optional=True, blacklist_after=blacklist_after, samples_per_round=samples_per_round)
        check_numbers(0, alpha=alpha, threshold=threshold, pacer_delta=pacer_delta, cut_off=cut_off)
        check_numbers(1, sample_window=sample_window)
        check_shares(exploration=exploration, exploration_decay=exploration_decay)
        check_shares(exploration_least=exploration_least, clip=clip, blacklist_share=blacklist_share)
        check_choice("silent", silent, "mean", "zero")
        self.cohort, self.alpha, self.exploration = cohort, alpha, exploration
        self.exploration_decay, self.exploration_least = exploration_decay, exploration_least
        self.threshold, self.pacer_step, self.pacer_delta = threshold, pacer_step, pacer_delta
        self.clip, self.cut_off, self.sample_window = clip, cut_off, sample_window
        self.blacklist_after, self.blacklist_share = blacklist_after, blacklist_share
        self.silent, self.samples_per_round = silent, samples_per_round
        self._memory = OortState(silent, samples_per_round)
        self._percentile = threshold
        self._epsilon = exploration
        self._at_work = InFlight()
        self._exploits: BoolArray = np.zeros(0, dtype=np.bool_)
        self._gained: list[float] = []
        self._gain, self._round = 0.0, 0

    def select(self, view: RoundView, rng: np.random.Generator) -> Cohort:
        """Return exploited and explored clients, and others at random if these are too few."""
        self._memory.meet(view)
        self._at_work.meet(view)
        self._exploits = np.pad(self._exploits, (0, max(view.clients - self._exploits.size, 0)))
        self._pace(view.round)
        size = cohort_size(view, self.cohort)
        places = self._explored(size)
        first = view.client[:0]
        if np.any(self._memory.tried):
            chosen, first = self._chosen(view, size, places, rng)
        else:
            chosen = np.sort(rng.permutation(view.client)[:size])
        self._exploits[chosen] = False
        self._exploits[first] = True
        self._at_work.sent(chosen)
        return Cohort(chosen)

    def _chosen(self, view: RoundView, size: int, places: int, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
        """Return who is selected, and who of them is exploited, when so many places are for exploring."""
        tried = self._memory.tried[view.client]
        listed = blacklist(view, self.blacklist_after, self.blacklist_share)
        known, untried = np.flatnonzero(tried & ~listed), np.flatnonzero(~tried)
        exploited = min(size - places, known.size)
        explored = min(size - exploited, untried.size)
        first = known[self._exploit(view.client[~listed], view.client[known], exploited, view.round, rng)]
        second = untried[self._explore(view.client[untried], explored, rng)]
        taken = np.concatenate([first, second])
        return view.client[fill_up(taken, size, view.client.size, rng)], view.client[first]

    def observe(self, reports: Reports) -> None:
        """Remember utilities, rounds and durations, and the mean utility of those that were exploited."""
        self._at_work.heard(reports)
        gained = self._memory.learn(reports)
        mine = self._exploits[reports.client[reports.delivered]]
        self._gain = float(gained[mine].sum() / (np.count_nonzero(mine) + 1e-4))

    def preferred_s(self) -> float:
        """Return T in seconds; infinite from the 100th percentile on, and while no duration is known."""
        durations_s = self._durations_s()
        known_s = np.sort(durations_s[np.isfinite(durations_s)])
        if self._percentile >= 100 or not known_s.size:
            return math.inf
        return float(known_s[min(int(known_s.size * self._percentile / 100), known_s.size - 1)])

    def score(self, candidates: IntArray, client: IntArray, round_: int) -> FloatArray:
        """Return the scores of tried clients; the normalisation is over all candidates with a positive utility."""
        memory = self._memory
        rewards = np.where(memory.tried, memory.utility, memory.batch)[candidates]
        rewards = np.sort(rewards[rewards > 0])
        if not rewards.size:
            rewards = np.zeros(1)
        limit = rewards[min(int(rewards.size * self.clip), rewards.size - 1)]
        least = 0.999 * rewards[0]
        worth = (np.minimum(memory.utility[client], limit) - least) / max(rewards[-1] - least, 1e-4)
        worth += np.sqrt(0.1 * math.log(round_) / memory.last_round[client])
        return np.asarray(np.abs(worth * self._haste(client)))

    def _durations_s(self) -> FloatArray:
        """Return the duration of every client: the last one, before the first the declared one, NaN without that."""
        return np.where(self._memory.tried, self._memory.duration_s, self._memory.declared_s)

    def _haste(self, client: IntArray) -> FloatArray:
        """Return ``(T / D)^alpha`` of those slower than T, 1 of others."""
        duration_s, preferred_s = self._durations_s()[client], self.preferred_s()
        slow = duration_s > preferred_s
        haste = np.ones(client.size)
        haste[slow] = (preferred_s / np.maximum(duration_s[slow], 1e-4)) ** self.alpha
        return haste

    def _explored(self, size: int) -> int:
        """Let epsilon decay, and return how many of so many are explored."""
        share = self._at_work.share(size)
        self._epsilon = max(self._epsilon * self.exploration_decay**share, self.exploration_least)
        return self._at_work.whole(size * self._epsilon, share)

    def _pace(self, round_: int) -> None:
        """Move T's percentile by what exploited clients have gained in the last two windows, once a round."""
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
        """Return positions among the tried clients."""
        if not size:
            return np.zeros(0, dtype=np.int64)
        score = self.score(candidates, client, round_)
        order = np.argsort(-score, kind="stable")
        line = self.cut_off * score[order[min(size, order.size - 1)]]
        above = int(np.count_nonzero(score >= line))
        admitted = order[: max(above, min(10 * size + 1, order.size))]
        return admitted[draw_distinct(score[admitted], size, rng)]

    def _explore(self, client: IntArray, size: int, rng: np.random.Generator) -> IntArray:
        """Return positions among the untried clients: of those with most samples and haste, equals at random."""
        shuffled = rng.permutation(client.size)
        weight = (self._memory.batch[client] * self._haste(client))[shuffled]
        first = np.argsort(-weight, kind="stable")[: int(self.sample_window * size)]
        return np.asarray(shuffled[first[draw_distinct(weight[first], size, rng)]])
