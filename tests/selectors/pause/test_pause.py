"""PAUSE, its enumeration, its Genie, BSFL and both annealings against equations (7) to (14), in random situations."""

import math
from itertools import combinations

import numpy as np
import pytest

from fedsim.selectors import SELECTORS
from tests.support.views import reports_of, rng, view_of

TAU_MIN_S, BUDGET, ETA = 0.05, 20.0, 0.04


class ToTheLetter:
    """The terms of PAUSE, with a loop over rounds for each of them; options are the selector's."""

    def __init__(self, samples, cohort, private, beta, alpha, gamma=0.0, zeta=1.0, time_index="paper", factor=None):
        self.samples, self.cohort, self.private, self.factor = samples, cohort, private, factor or cohort + 1
        self.beta, self.alpha, self.gamma, self.zeta, self.lag = beta, alpha, gamma, zeta, time_index == "paper"
        self.mean_reward, self.rewards = None, [[] for _ in samples]
        self.participations = np.zeros(len(samples), dtype=np.int64)

    def spent(self, k):
        shares = (BUDGET * (math.e**ETA - 1) * math.e ** (-ETA * i) for i in range(1, self.participations[k] + 1))
        return math.fsum(shares) if self.private else 0.0

    def generalisation(self, k, number):
        fair = (
            self.cohort * self.samples[k] / sum(self.samples) if any(self.samples) else self.cohort / len(self.samples)
        )
        missing = fair - self.participations[k] / max(number - self.lag, 1)
        return math.copysign(abs(missing) ** self.beta, missing)

    def latency(self, k, number):
        if self.mean_reward is not None:
            return self.mean_reward[k]
        if not self.rewards[k]:
            return math.inf
        confidence = self.factor * math.log(max(number - self.lag, 1)) / self.participations[k]
        return self.zeta * np.mean(self.rewards[k]) + math.sqrt(confidence)

    def energy(self, members, number):
        """Equation 14; sets of clients that were never tried are ordered by their other terms."""
        bonus = math.fsum(self.alpha * self.generalisation(k, number) for k in members)
        bonus += math.fsum(self.gamma * (1 - self.spent(k) / BUDGET) for k in members) if self.private else 0.0
        lowest = min(self.latency(k, number) for k in members)
        untried = math.isinf(lowest)
        return untried, round((0.0 if untried else lowest) + bonus / len(members), 9)


EXACT = ("pause", "pause-enumeration", "pause-genie", "bsfl")


@pytest.mark.parametrize("kind", [*EXACT, "sa-pause", "pause-vanilla-sa"])
@pytest.mark.cases(25, 60)
def test_the_cohort_is_the_set_of_greatest_energy(kind, cases):
    for case in cases:
        luck = np.random.default_rng([case, len(kind)])
        clients = int(luck.integers(1, 8))
        cohort, samples = int(luck.integers(1, clients + 2)), luck.integers(0, 50, clients) * luck.integers(0, 2)
        options = {"alpha": float(luck.choice([0, 1, 20])), "beta": float(luck.choice([1, 2, 3]))}
        options |= {"time_index": str(luck.choice(["paper", "reference-code"]))}
        options |= {} if kind == "bsfl" else {"gamma": float(luck.choice([0, 5, 40]))}
        options |= {} if kind in ("bsfl", "pause-genie") else {"zeta": float(luck.choice([1, 3]))}
        letter = ToTheLetter(samples.tolist(), cohort, luck.random() < 0.7, **options)
        if kind == "bsfl" and luck.random() < 0.5:
            letter.factor, options["confidence"] = clients, "crowd"
        elif kind == "pause-genie":
            letter.mean_reward = luck.uniform(0.01, 1.0, clients).tolist()
            options |= {"expected_reward": letter.mean_reward} if luck.random() < 0.5 else {}
        elif kind not in EXACT:
            options |= {"iterations": 4, "start": str(luck.choice(["random", "last"]))}
        selector = SELECTORS.load(kind)(cohort, tau_min_s=TAU_MIN_S, **options)
        for number in range(1, int(luck.integers(2, 12))):
            there = np.flatnonzero(luck.random(clients) < luck.choice([1, 0.6]))
            wanted = None if luck.random() < 0.7 else int(luck.integers(0, clients + 1))
            known = {"samples": samples[there], "total_samples": int(samples.sum()), "wanted": wanted}
            known |= {"participations": letter.participations[there]}
            known |= {"privacy_budget": BUDGET if letter.private else None}
            known["privacy_spent"] = np.array([letter.spent(k) for k in there])
            if letter.mean_reward is not None:
                known["oracle"] = {"expected_duration_s": TAU_MIN_S / np.array(letter.mean_reward)[there]}
            client = selector.select(view_of(there, clients=clients, round=number, **known), rng(number)).client
            assert client.size == min(cohort if wanted is None else wanted, there.size)
            if client.size:
                best = max(letter.energy(members, number) for members in combinations(there.tolist(), client.size))
                found = letter.energy(client.tolist(), number)
                assert found[0] == best[0], (case, number)
                assert kind not in EXACT or found[1] == pytest.approx(best[1], abs=1e-8), (case, number)
            letter.participations[client] += 1
            if luck.random() < 0.15:
                continue  # as after a crash of the server, which counts participations and has heard of nobody
            duration_s = np.where(luck.random(client.size) < 0.2, 0.03, luck.exponential(0.4, client.size))
            selector.observe(reports_of(client, duration_s, delivered=luck.random(client.size) < 0.8, number=number))
            for k, took_s in zip(client.tolist(), duration_s, strict=True):
                letter.rewards[k].append(TAU_MIN_S / max(took_s, TAU_MIN_S))
