"""TiFL: each round's cohort from one tier of clients of similar latency."""

import math
from dataclasses import dataclass
from typing import Annotated, Final, Literal

import numpy as np

from fedsim.arrays import BoolArray, FloatArray, IntArray
from fedsim.selectors.contracts import Cohort, Probe, Reports, RoundView
from fedsim.selectors.options import Above0, AtLeast0, Count, Range
from fedsim.selectors.sampling import CohortSelector, grown, lowest
from fedsim.units import Bits, Bound, Seconds

NO_TIER: Final = -1
"""Tier of a client that is in none."""


class Profile:
    """Latencies and tiers of all clients, over client ids; tier 0 is the fastest."""

    def __init__(self, tiers: int, tries: int, timeout_s: float | None) -> None:
        self.tiers, self.tries, self.timeout_s = tiers, tries, timeout_s
        self._done: IntArray = np.zeros(0, dtype=np.int64)
        self._counted: IntArray = np.zeros(0, dtype=np.int64)
        self._total_s: FloatArray = np.zeros(0)
        self._answered: BoolArray = np.zeros(0, dtype=bool)
        self._changed = False
        self.tier: IntArray = np.zeros(0, dtype=np.int64)

    def make_room(self, clients: int) -> None:
        self._done, self._counted = grown(self._done, clients), grown(self._counted, clients)
        self._total_s, self._answered = grown(self._total_s, clients), grown(self._answered, clients)
        self.tier = grown(self.tier, clients, NO_TIER)

    def open(self, client: IntArray) -> BoolArray:
        """Return the mask of clients with fewer than ``tries`` profiling rounds, shape of ``client``."""
        return np.asarray(self._done[client] < self.tries)

    def tries_of(self, client: IntArray) -> IntArray:
        return self._done[client]

    def learn(self, client: IntArray, latency_s: FloatArray) -> None:
        """Add one try of each client: its latency in seconds, NaN without an answer; shapes (n,)."""
        answered = np.isfinite(latency_s) & (latency_s <= (np.inf if self.timeout_s is None else self.timeout_s))
        counts = answered | (self.timeout_s is not None)
        self._done[client] += 1
        self._answered[client] |= answered
        self._counted[client] += counts
        self._total_s[client] += np.where(answered, latency_s, (self.timeout_s or 0.0) * counts)
        self._changed |= bool(client.size)

    def sort(self) -> None:
        """Assign tiers by mean latency, ties by id, if there are new tries."""
        if not self._changed:
            return
        known = np.flatnonzero(self._answered)
        order = known[np.argsort(self._total_s[known] / self._counted[known], kind="stable")]
        self.tier[:] = NO_TIER
        self.tier[order] = np.arange(order.size) * self.tiers // max(order.size, 1)
        self._changed = False


Policy = Literal["adaptive", "uniform", "random", "fast", "slow"]
Evaluation = Literal["probe", "losses"]
Improvement = Literal["relative", "absolute"]

_RANDOM: Final = (0.7, 0.1, 0.1, 0.05, 0.05)


@dataclass(eq=False, repr=False)
class Tifl(CohortSelector):
    """Profile clients, split them into tiers by latency, and draw each round's cohort within a random tier.

    The static policies draw tiers with fixed probabilities. The adaptive policy (Algorithm 2) starts with equal
    probabilities and spends a credit of the drawn tier each round. Every I rounds, if the accuracy of the last tier has
    not risen in I rounds, the n tiers with credits get the probabilities ``(n - rank) / (n (n + 1) / 2)``, rank 0 for
    the tier of least accuracy; a tier of which nothing is known has the probability 1/n.

    Parameters
    ----------
    cohort : int >= 1
        Number of clients per round; all candidates if there are no more than that.
    tiers : int >= 1
        Number of tiers, of equal numbers of clients (5 in the paper).
    policy : ``"adaptive"``, ``"uniform"``, ``"random"``, ``"fast"`` or ``"slow"``
        The paper's policies; random is 0.7, 0.1, 0.1, 0.05 and 0.05 from the fastest tier to the slowest, for five
        tiers; fast and slow are the first and the last tier alone.
    probabilities : list of floats >= 0, one per tier from the fastest on, or None
        Probabilities of a static policy, instead of ``policy``.
    interval : int >= 1
        I in rounds; the paper gives no number.
    credits : int >= 1 or None
        Number of draws of each tier by the adaptive policy; None for no limit. The paper gives no number. When no tier
        has credits left, all tiers may be drawn.
    profiling : ``"probe"`` or ``"rounds"``
        Latency is the client's answer about its work and upload when it is first a candidate; or it is measured in
        rounds: clients with fewer than ``tries`` rounds come first, as the paper's profiler trains with all clients.
    evaluation : ``"losses"`` or ``"probe"``
        Source of the tiers' accuracies: the last training losses of delivered updates, a number each; or, as the paper
        evaluates the model on data of every tier, a question to all candidates in tiers for the loss of the model on
        their data, every I rounds. The default asks no client.
    improvement : ``"relative"`` or ``"absolute"``
        Whether the accuracy of the last tier has to rise by more than the mean of all tiers, or to rise at all. The
        paper compares test accuracies, which end rising; losses of training fall nearly always, so that with
        ``"absolute"`` probabilities hardly ever change.
    tries : int >= 1
        Number of profiling rounds of each client, sync_rounds.
    timeout_s : float > 0 or None
        T_max: longest wait for an answer to a probe, the greatest latency of a client in a tier, and the latency of a
        try without an answer. None for the round's time limit, where it has one; the question about latency then
        waits for all clients asked.
    down_bits, up_bits : floats >= 0
        Size of the question about latency and of its answer, and ``up_bits`` also that of a loss; a choice of fedsim.

    Notes
    -----
    The paper evaluates the model on test data of every tier after every round. A server without test data knows losses:
    a tier's accuracy is minus the mean loss of its clients. Evaluation affects the adaptive policy only. Questions
    about latency come first; an evaluation waits for a round without one.

    Clients without any answer within T_max during profiling are dropouts: they are selected last. Clients that left
    during a question are asked again when they are candidates. A tier with fewer candidates than the cohort is filled
    up from the tiers next to it in speed, the faster first.
    """

    paper = "Chai et al., TiFL: A Tier-based Federated Learning System, HPDC 2020"
    needs = ("loss",)
    communication = (
        "a request down and two numbers up per client once, or profiling rounds; a number up per update, or a model "
        "down and a number up for all candidates every I rounds"
    )

    tiers: Annotated[Count, Bound(0, 10**4)] = 5
    policy: Policy = "adaptive"
    probabilities: list[float] | None = None
    interval: Count = 10
    credits: Count | None = None
    profiling: Literal["probe", "rounds"] = "probe"
    tries: Count = 1
    evaluation: Evaluation = "losses"
    improvement: Improvement = "relative"
    timeout_s: Above0[Seconds] | None = None
    down_bits: AtLeast0[Bits] = 256.0
    up_bits: AtLeast0[Bits] = 256.0

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_probabilities(self.tiers, self.policy, self.probabilities)
        self._profile = Profile(self.tiers, self.tries, self.timeout_s)
        self._asked: IntArray = np.zeros(0, dtype=np.int64)
        self._loss: FloatArray = np.zeros(0)
        self._chance = _static(self.tiers, self.policy, self.probabilities)
        self._credits = np.full(self.tiers, np.inf if self.credits is None else self.credits)
        self._before: FloatArray = np.full(self.tiers, np.nan)
        self._tier, self._begun, self._next_check = -1, 0, 0
        self.asks_losses = self.evaluation == "probe"
        if self.policy == "slow" and self.probabilities is None:
            self.may_stall = "the slowest tier alone is drawn, and clients that never deliver are in it"
        self._adapts = self.policy == "adaptive" and self.probabilities is None
        self._evaluates = False

    def probe(self, view: RoundView, rng: np.random.Generator) -> Probe | None:
        self._make_room(view.clients)
        self._asked = view.client[:0] if self.profiling == "rounds" else view.client[self._profile.open(view.client)]
        if self._asked.size:
            return Probe(
                client=self._asked,
                asks="resources",
                down_bits=self.down_bits,
                up_bits=self.up_bits,
                wait_s=self.timeout_s,
            )
        judges = view.client[self._profile.tier[view.client] >= 0]
        if self.evaluation == "losses" or not self._adapts or self._age(view) < self._next_check or not judges.size:
            return None
        self._evaluates = True
        return Probe(client=judges, asks="loss", up_bits=self.up_bits, wait_s=self._profile.timeout_s)

    def select(self, view: RoundView, rng: np.random.Generator) -> Cohort:
        self._make_room(view.clients)
        size = self.cohort_size(view)
        if not size:
            return Cohort(view.client[:0])
        if self.timeout_s is None:
            self._profile.timeout_s = view.deadline_s
        self._read_answers(view)
        if self.profiling == "rounds" and self._profile.open(view.client).any():
            return Cohort(np.sort(view.client[lowest(self._profile.tries_of(view.client).astype(float), size, rng)]))
        self._profile.sort()
        tier = self._profile.tier[view.client]
        if not (tier >= 0).any():
            return Cohort(np.sort(rng.choice(view.client, size, replace=False)))
        self._adapt(view)
        self._tier = self._draw(np.bincount(tier[tier >= 0], minlength=self.tiers), rng)
        away = np.where(tier < 0, 2.0 * self.tiers, np.abs(tier - self._tier) + 0.5 * (tier > self._tier))
        return Cohort(np.sort(view.client[lowest(away, size, rng)]))

    def observe(self, reports: Reports) -> None:
        self._make_room(int(reports.client.max(initial=-1)) + 1)
        if self.evaluation == "losses":
            heard = reports.delivered & np.isfinite(reports.loss)
            self._loss[reports.client[heard]] = reports.loss[heard]
        if self.profiling == "rounds":
            profiled = self._profile.open(reports.client)
            latency_s = np.where(reports.delivered, reports.duration_s, np.nan)
            self._profile.learn(reports.client[profiled], latency_s[profiled])

    def accuracy(self) -> FloatArray:
        """Return minus the mean loss known of each tier's clients, in place of test accuracy, or NaN."""
        known = np.flatnonzero(~np.isnan(self._loss) & (self._profile.tier >= 0))
        tier, count = self._profile.tier[known], np.zeros(self.tiers)
        np.add.at(count, tier, 1.0)
        total = np.zeros(self.tiers)
        np.add.at(total, tier, -self._loss[known])
        return np.asarray(np.divide(total, count, out=np.full(self.tiers, np.nan), where=count > 0))

    def _read_answers(self, view: RoundView) -> None:
        """Store the answers to the last question, and missing answers."""
        if self._evaluates:
            self._loss[:] = np.nan
            if view.answers is not None:
                self._loss[view.answers.client] = view.answers.loss
        elif view.answers is not None and self._asked.size:
            latency_s = np.full(self._asked.size, np.nan)
            order = np.argsort(self._asked, kind="stable")
            places = order[np.searchsorted(self._asked[order], view.answers.client)]
            latency_s[places] = view.answers.compute_s + view.answers.uplink_s
            # Clients that have left are asked again; a missing answer of a candidate counts as a try.
            present = np.isin(self._asked, view.client)
            self._profile.learn(self._asked[present], latency_s[present])
        self._asked = view.client[:0]

    def _age(self, view: RoundView) -> int:
        """Return the rounds since tiers were drawn first."""
        return view.round - (self._begun or view.round)

    def _adapt(self, view: RoundView) -> None:
        """Adapt the probabilities of tiers every I rounds, if the accuracy of the current tier has not risen."""
        self._begun = self._begun or view.round
        checks = self._evaluates if self.evaluation == "probe" else self._age(view) >= self._next_check
        self._evaluates = False
        if not self._adapts or not checks:
            return
        self._next_check = (self._age(view) // self.interval + 1) * self.interval
        now = self.accuracy()
        common = 0.0
        if self.improvement == "relative" and (both := ~np.isnan(now + self._before)).any():
            common = float(np.mean((now - self._before)[both]))
        if self._tier >= 0 and now[self._tier] - self._before[self._tier] <= common:
            self._chance = ranked(now, self._credits > 0)
        self._before = now

    def _draw(self, candidates: IntArray, rng: np.random.Generator) -> int:
        """Draw a tier with candidates and credits, and spend one credit; ``candidates`` counts them, shape (tiers,)."""
        chance = np.where((candidates > 0) & (self._credits > 0), self._chance, 0.0)
        if not chance.any():
            chance = np.where(candidates > 0, self._chance, 0.0)
        if not chance.any():
            chance = (candidates > 0).astype(float)
        tier = int(rng.choice(self.tiers, p=chance / chance.sum()))
        if self._adapts:
            self._credits[tier] = max(self._credits[tier] - 1, 0)
        return tier

    def _make_room(self, clients: int) -> None:
        self._profile.make_room(clients)
        self._loss = grown(self._loss, clients, np.nan)


def ranked(accuracy: FloatArray, allowed: BoolArray) -> FloatArray:
    """Return the probabilities of tiers by ascending accuracy: ``(n - rank) / (n (n + 1) / 2)``."""
    among = np.flatnonzero(allowed) if allowed.any() else np.arange(accuracy.size)
    known = among[~np.isnan(accuracy[among])]
    k, chance = known.size, np.zeros(accuracy.size)
    chance[among] = 1.0 / among.size
    rising = known[np.argsort(accuracy[known], kind="stable")]
    chance[rising] = (k - np.arange(k)) / (k * (k + 1) / 2) * k / among.size if k else 0.0
    return chance


def _static(tiers: int, policy: Policy, probabilities: list[float] | None) -> FloatArray:
    """Return the initial probabilities of a policy, shape (tiers,)."""
    if probabilities is not None:
        return np.array(probabilities) / sum(probabilities)
    if policy == "random":
        return np.array(_RANDOM)
    if policy in ("fast", "slow"):
        return np.asarray(np.eye(tiers)[0 if policy == "fast" else -1])
    return np.full(tiers, 1.0 / tiers)


def _check_probabilities(tiers: int, policy: Policy, probabilities: list[float] | None) -> None:
    if probabilities is None:
        if policy == "random" and tiers != len(_RANDOM):
            raise ValueError(f"policy: 'random' is not allowed with {tiers} tiers; it is defined for {len(_RANDOM)}")
        return
    refused = f"probabilities: {probabilities!r} is not allowed; it must be a list of {tiers} numbers, not all 0"
    if not isinstance(probabilities, list | tuple):
        raise ValueError(refused)
    for number in probabilities:
        Range(0).check("probabilities", number)
    if len(probabilities) != tiers or not 0 < sum(probabilities) < math.inf:
        raise ValueError(refused)
