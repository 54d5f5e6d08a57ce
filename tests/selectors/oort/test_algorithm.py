"""Oort, its form in FedScale and EAFL, followed to the letter: the weights of each draw, and its places."""

import math

import numpy as np
import pytest

from fedsim.selectors import SELECTORS
from fedsim.selectors.oort import fedscale, oort
from fedsim.selectors.sampling import draw_distinct
from tests.support.views import measured_reports_of, rng, view_of

DECAY, LEAST = 0.7, 0.2
COMMON = {"silent": ("zero", "mean"), "samples_per_round": (None, 4)}
COMMON |= {"blacklist_after": (None, 1), "blacklist_share": (1.0,)}
OPTIONS = {
    "oort": COMMON
    | {"window": (1, 2, 3), "preferred": ("crowd", "cohorts", "percentile"), "pacer_step_s": (None, None, 0.5)}
    | {"clip": (0.95, 0.5), "cut_off": (0.95, 0.3, 0.0), "by_speed": (True, False), "pacer_asked": ("round", "window")},
    "oort-fedscale": COMMON
    | {"threshold": (30.0, 60.0, 100.0), "pacer_step": (1, 2, 3), "clip": (0.9, 0.5), "cut_off": (0.05, 0.9)}
    | {"sample_window": (1.0, 2.0, 5.0)},
    "eafl": {"utility_share": (0.25, 0.0, 1.0), "window": (1, 2, 3)},
}
EAFL = {"silent": "zero", "samples_per_round": None, "blacklist_after": 10, "blacklist_share": 0.3, "by_speed": True}
EAFL |= {"preferred": "crowd", "pacer_step_s": None, "clip": 0.95, "cut_off": 0.95, "pacer_asked": "round"}


class ToTheLetter:
    """What the server knows of each client, in dictionaries, and the two draws of a round."""

    def __init__(self, clients, cohort, alpha, options):
        vars(self).update(EAFL | options)
        self.clients, self.cohort, self.alpha, self.epsilon = clients, cohort, alpha, 0.9
        self.utility, self.duration_s, self.last, self.delivered = {}, {}, {}, set()
        self.batch, self.declared_s, self.power = {}, {}, {}
        self.gained, self.relaxed, self.exploited = [], 0, set()

    def meet(self, there, samples, declared_s, power):
        self.batch.update({k: min(samples[k], self.samples_per_round or math.inf) for k in there})
        self.declared_s.update({} if declared_s is None else {k: declared_s[k] for k in there})
        self.power.update(zip(there, power, strict=True))

    def groups(self, there, participations):
        listed = sorted(
            (k for k in there if participations[k] > (self.blacklist_after or math.inf)),
            key=lambda k: -participations[k],
        )
        listed = listed[: int(self.blacklist_share * self.clients)]
        return (
            listed,
            [k for k in there if k in self.last and k not in listed],
            [k for k in there if k not in self.last],
        )

    def hear(self, client, delivered, loss, duration_s, number):
        known = [value if math.isfinite(value) else 1.0 for value in loss]
        utility = {k: self.batch[k] * value for k, value, told in zip(client, known, delivered, strict=True) if told}
        mean = np.mean(list(utility.values())) if utility and self.silent == "mean" else 0.0
        self.delivered |= set(utility)
        self.utility |= utility | {k: mean for k in client if k not in self.delivered}
        self.duration_s.update(zip(client, duration_s, strict=True))
        self.last.update(dict.fromkeys(client, number))
        return utility

    def penalised(self, k, worth, preferred_s, duration_s):
        return worth * (preferred_s / duration_s[k]) ** self.alpha if duration_s.get(k, 0.0) > preferred_s else worth


class Oort(ToTheLetter):
    def preferred_s(self):
        durations = sorted(self.duration_s.values())
        if self.pacer_step_s is not None:
            return (1 + self.relaxed) * self.pacer_step_s
        covered, percent = (1 + self.relaxed) * self.window * self.cohort, 30 + 5 * self.relaxed
        large = 10 * self.window * self.cohort <= 3 * self.clients
        if self.preferred == "percentile" or (self.preferred == "crowd" and not large):
            covered = max(len(durations) * percent // 100, 1) if percent < 100 else len(durations)
        return math.inf if len(durations) <= covered else durations[covered - 1]

    def draws(self, there, size, number, participations):
        _, known, untried = self.groups(there, participations)
        explored = min(int(self.epsilon * size + 1e-9), len(untried))
        self.epsilon = max(self.epsilon * DECAY, LEAST) if size else self.epsilon
        exploited = min(size - explored, len(known))
        limit = np.quantile(list(self.utility.values()), self.clip) if self.utility else 0.0
        worth = {}
        for k in known:  # lines 9 to 12
            worth[k] = min(self.utility[k], limit) + math.sqrt(0.1 * math.log(number) / self.last[k])
            worth[k] = self.penalised(k, worth[k], self.preferred_s(), self.duration_s)
        if hasattr(self, "utility_share"):
            most = max(worth.values(), default=0.0) or 1.0
            share = self.utility_share
            worth = {k: share * value / most + (1 - share) * self.power[k] for k, value in worth.items()}
        falling = sorted(worth.values(), reverse=True)
        speed = [1 / self.declared_s[k] if self.by_speed and self.declared_s else 1.0 for k in untried]
        if exploited:  # lines 13 to 15
            yield [value for value in falling if value >= self.cut_off * falling[exploited - 1]], exploited
        yield speed, min(size - exploited, len(untried))  # line 16

    def observe(self, client, delivered, loss, duration_s, number):
        self.gained.append(sum(self.hear(client, delivered, loss, duration_s, number).values()))
        w, rounds = self.window, len(self.gained)
        if rounds >= 2 * w and (self.pacer_asked == "round" or rounds % w == 0):  # lines 7 and 8
            self.relaxed += sum(self.gained[-2 * w : -w]) > sum(self.gained[-w:])


class FedScale(ToTheLetter):
    gain = 0.0

    def draws(self, there, size, number, participations):
        self.gained.append(self.gain)
        self.gain, step = 0.0, self.pacer_step
        if number >= 2 * step and number % step == 0:
            before, now = sum(self.gained[-2 * step : -step]), sum(self.gained[-step:])
            if abs(now - before) <= 0.1 * before:
                self.threshold = min(100.0, self.threshold + 5.0)
            elif abs(now - before) >= 5.0 * before:
                self.threshold = max(5.0, self.threshold - 5.0)
        self.epsilon = max(self.epsilon * DECAY, LEAST) if size else self.epsilon
        listed, known, untried = self.groups(there, participations)
        exploited = min(size - int(self.epsilon * size + 1e-9), len(known))
        explored = min(size - exploited, len(untried))
        if not self.last:
            return
        duration_s = self.declared_s | self.duration_s
        rising = sorted(duration_s.values())
        preferred_s = math.inf
        if self.threshold < 100 and rising:
            preferred_s = rising[min(int(len(rising) * self.threshold / 100), len(rising) - 1)]
        rewards = sorted(self.utility.get(k, self.batch[k]) for k in there if k not in listed)
        rewards = [reward for reward in rewards if reward > 0] or [0.0]
        limit, least = rewards[min(int(len(rewards) * self.clip), len(rewards) - 1)], 0.999 * rewards[0]
        score = []
        for k in known:
            worth = (min(self.utility[k], limit) - least) / max(rewards[-1] - least, 1e-4)
            worth += math.sqrt(0.1 * math.log(number) / self.last[k])
            score.append(abs(self.penalised(k, worth, preferred_s, duration_s)))
        score.sort(reverse=True)
        if exploited:
            line = self.cut_off * score[min(exploited, len(score) - 1)]
            yield [value for place, value in enumerate(score) if value >= line or place <= 10 * exploited], exploited
        weight = sorted((self.penalised(k, self.batch[k], preferred_s, duration_s) for k in untried), reverse=True)
        yield weight[: int(self.sample_window * explored)], explored

    def observe(self, client, delivered, loss, duration_s, number):
        utility = self.hear(client, delivered, loss, duration_s, number)
        mine = [value for k, value in utility.items() if k in self.exploited]
        self.gain = sum(mine) / (len(mine) + 1e-4)


@pytest.fixture
def drawn(monkeypatch):
    """Return the weights, ascending, and the number of places of each draw."""
    found = []

    def noted(weights, size, luck):
        found.append((np.sort(weights).tolist(), size, draw_distinct(weights, size, luck)))
        return found[-1][2]

    for module in (oort, fedscale):
        monkeypatch.setattr(module, "draw_distinct", noted)
    return found


@pytest.mark.parametrize("kind", OPTIONS)
@pytest.mark.cases(35, 100)
def test_each_draw_is_that_of_the_algorithm(kind, drawn, cases):
    for case in cases:
        luck = np.random.default_rng([case, len(kind)])
        clients = int(luck.integers(1, 25))
        cohort, alpha = int(luck.integers(1, min(clients + 2, 8))), float(luck.choice([0, 2]))
        options = {name: values[luck.integers(len(values))] for name, values in OPTIONS[kind].items()}
        epsilon = {"exploration": 0.9, "exploration_decay": DECAY, "exploration_least": LEAST}
        selector = SELECTORS.load(kind)(cohort, alpha=alpha, **epsilon, **options)
        letter = (FedScale if kind == "oort-fedscale" else Oort)(clients, cohort, alpha, options)
        features = luck.random((clients, 4)) if luck.random() < 0.7 else None
        samples, participations = luck.integers(0, 9, clients), np.zeros(clients, dtype=np.int64)
        for number in range(1, int(luck.integers(3, 12))):
            there = np.flatnonzero(luck.random(clients) < luck.choice([1, 0.6]))
            charge_j, taken_j = luck.random((2, there.size))
            known = {"charge_j": 5 * charge_j, "capacity_j": np.full(there.size, 5.0), "participation_j": 3 * taken_j}
            power = np.clip(charge_j - 0.6 * taken_j, 0, 1)
            if luck.random() < 0.2:
                known, power = {}, np.ones(there.size)
            known |= {"features": features, "samples": samples[there], "participations": participations[there]}
            wanted = None if luck.random() < 0.8 else int(luck.integers(0, clients + 1))
            size = min(cohort if wanted is None else wanted, there.size)
            declared_s = None if features is None else features[:, :3].sum(axis=1)
            letter.meet(there.tolist(), samples, declared_s, power)
            drawn.clear()
            view = view_of(there, clients=clients, round=number, wanted=wanted, **known)
            client = selector.select(view, rng(number)).client
            assert client.size == size == len(set(client.tolist()) & set(there.tolist()))
            due = list(letter.draws(there.tolist(), size, number, participations))
            assert [one[1] for one in drawn] == [one[1] for one in due], (case, number)
            for (weights, *_), (expected, _) in zip(drawn, due, strict=True):
                assert weights == pytest.approx(sorted(expected), rel=1e-9), (case, number)
            exploited = set(client.tolist()) & set(letter.last)
            if len(exploited) > sum(places for _, places in due[:-1]):
                break  # free places went to clients at random, who are not to be told from the exploited
            letter.exploited = (letter.exploited - set(client.tolist())) | exploited
            participations[client] += 1
            delivered, loss = luck.random(size) < 0.7, luck.exponential(size=size)
            loss[luck.random(size) < 0.1] = np.nan
            told = (client.tolist(), delivered, loss, luck.exponential(size=size), number)
            selector.observe(measured_reports_of(client, delivered, loss, duration_s=told[3], number=number))
            letter.observe(*told)
