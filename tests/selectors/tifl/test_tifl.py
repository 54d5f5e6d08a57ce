"""TiFL: profiling, tiers, credits and policies, by hand."""

import math

import numpy as np
import pytest

from fedsim.selectors.tifl.tifl import Tifl, ranked
from tests.support.views import answers_of, check_shares, reports_of, rng, view_of


def profiled(selector, latency_s):
    """Answer the selector's first question and let it select once."""
    view = view_of(len(latency_s))
    asked = selector.probe(view, rng()).client
    half = np.asarray(latency_s, dtype=float)[asked] / 2
    heard = view_of(len(latency_s), answers=answers_of(asked, compute_s=half, uplink_s=half))
    return selector, selector.select(heard, rng()).client.tolist()


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("options", "chance"),
    [
        ({"policy": "uniform"}, [0.2] * 5),
        ({"policy": "fast"}, [1, 0, 0, 0, 0]),
        ({"policy": "slow"}, [0, 0, 0, 0, 1]),
        ({"policy": "random"}, [0.7, 0.1, 0.1, 0.05, 0.05]),
        ({"tiers": 2, "probabilities": [1, 3]}, [0.25, 0.75]),
        ({"policy": "adaptive"}, [0.2] * 5),
    ],
)
def test_tiers_are_drawn_with_the_policy_s_probabilities(options, chance):
    selector, _ = profiled(Tifl(1, **options), np.arange(10))
    draws = rng(3)
    check_shares(lambda: selector.select(view_of(10), draws).client * len(chance) // 10, chance)


def test_ranks_worked_by_hand():
    """(n - rank) / (n (n + 1) / 2): three tiers share 6 parts, two of them 3."""
    accuracy = np.array([0.5, 0.3, 0.9])
    assert ranked(accuracy, np.ones(3, bool)) == pytest.approx(np.array([2, 3, 1]) / 6)
    assert ranked(accuracy, np.array([True, False, True])) == pytest.approx(np.array([2, 0, 1]) / 3)
    # Of a tier nothing is known: it keeps 1/3, and the others share 2/3 in parts of two and one.
    assert ranked(np.array([0.5, np.nan, 0.3]), np.ones(3, bool)) == pytest.approx(np.array([2, 3, 4]) / 9)
    assert ranked(np.full(2, np.nan), np.ones(2, bool)).tolist() == [0.5, 0.5]
    assert ranked(accuracy, np.zeros(3, bool)) == pytest.approx(np.array([2, 3, 1]) / 6)
    among_equals = ranked(np.where(np.arange(40) % 2, 0.5, 0.25), np.ones(40, bool)) * 820
    assert among_equals.tolist() == pytest.approx([part for k in range(20) for part in (40 - k, 20 - k)])


def test_only_newcomers_are_asked():
    selector, _ = profiled(Tifl(2), [1, 2, 3])
    assert selector.probe(view_of(3), rng()) is None
    probe = selector.probe(view_of(5), rng())
    assert probe.client.tolist() == [3, 4]
    assert probe.asks == "resources"
    asking = Tifl(2, down_bits=3.0, up_bits=5.0, timeout_s=7.0).probe(view_of(5), rng())
    assert (asking.down_bits, asking.up_bits, asking.wait_s, asking.samples) == (3.0, 5.0, 7.0, None)
    assert Tifl(2, timeout_s=None).probe(view_of(5), rng()).wait_s is None


def test_the_round_s_time_limit_is_t_max_unless_another_is_given():
    """Latencies 1 to 6 and a limit of 4: clients 4 and 5 are dropouts, selected last."""
    for options, dropouts in (({}, [4, 5]), ({"timeout_s": 2.0}, [2, 3, 4, 5]), ({"timeout_s": 9.0}, [])):
        selector, view = Tifl(4, tiers=2, **options), view_of(6, deadline_s=4.0)
        asked = selector.probe(view, rng()).client
        half = (asked + 1.0) / 2
        heard = answers_of(asked, compute_s=half, uplink_s=half)
        client = selector.select(view_of(6, deadline_s=4.0, answers=heard), rng()).client.tolist()
        assert np.flatnonzero(selector._profile.tier < 0).tolist() == dropouts
        assert client == [0, 1, 2, 3] or not dropouts or len(dropouts) > 2


def test_an_evaluation_asks_all_clients_in_tiers_every_so_many_rounds():
    """I = 3, after a round for the profile: checks precede the second selection and those after every third one."""
    selector, _ = profiled(Tifl(1, tiers=2, interval=3, evaluation="probe", timeout_s=8.0), [1, 2, 30])
    asked, changed = [], []
    for number in range(2, 9):
        view = view_of(3, round=number)
        probe = selector.probe(view, rng(number))
        if probe is not None:
            assert (probe.client.tolist(), probe.asks, probe.down_bits, probe.wait_s) == ([0, 1], "loss", None, 8.0)
            view = view_of(3, round=number, answers=answers_of([0, 1], loss=[1.0, 2.0]))
        selector.select(view, rng(number))
        selector.observe(reports_of([0], loss=[9.0], number=number))  # is not used
        asked.append(probe is not None)
        changed.append(selector._chance.tolist() != [0.5, 0.5])
    assert asked == [True, False, True, False, False, True, False]
    assert changed == [False, False, True, True, True, True, True]
    assert selector.accuracy().tolist() == [-1.0, -2.0]
    static, _ = profiled(Tifl(1, tiers=2, policy="fast", evaluation="probe"), [1, 2])
    assert static.probe(view_of(2, round=2), rng()) is None


class ToTheLetter:
    """Profiles, tiers and Algorithm 2 of TiFL, in dictionaries; options are the selector's."""

    def __init__(self, tiers, options):
        self.tiers, self.options, self.tries, self.latency_s = tiers, options, {}, {}
        self.chance, self.credits = np.full(tiers, 1 / tiers), np.full(tiers, float(options["credits"] or math.inf))
        self.loss, self.before, self.last, self.begun, self.due = {}, np.full(tiers, np.nan), -1, 0, 0

    def learn(self, client, took_s):
        """A try without an answer within T_max counts with T_max, where there is one."""
        most, self.tries[client] = self.options["timeout_s"] or math.inf, self.tries.get(client, 0) + 1
        heard = took_s is not None and took_s <= most
        if heard or most < math.inf:
            self.latency_s.setdefault(client, []).append((took_s if heard else most, heard))

    def open(self, client):
        return [k for k in client if self.tries.get(k, 0) < self.options["tries"]]

    def tier(self):
        heard = {k: tries for k, tries in self.latency_s.items() if any(answered for _, answered in tries)}
        mean_s = {k: np.mean([took_s for took_s, _ in tries]) for k, tries in heard.items()}
        rising = sorted(mean_s, key=lambda k: (mean_s[k], k))
        return {k: place * self.tiers // len(rising) for place, k in enumerate(rising)}

    def adapt(self, number):
        self.begun = self.begun or number
        if number - self.begun < self.due:
            return
        self.due = ((number - self.begun) // self.options["interval"] + 1) * self.options["interval"]
        tier, now = self.tier(), np.full(self.tiers, np.nan)
        for one in range(self.tiers):
            told = [-self.loss[k] for k in self.loss if tier.get(k) == one]
            now[one] = np.mean(told) if told else np.nan
        risen = (now - self.before)[~np.isnan(now + self.before)]
        common = risen.mean() if self.options["improvement"] == "relative" and risen.size else 0.0
        if self.last >= 0 and now[self.last] - self.before[self.last] <= common:
            self.chance = ranked(now, self.credits > 0)
        self.before = now


class Noted(Tifl):
    """Keeps the tier that is drawn in a round."""

    drawn = ()

    def _draw(self, *given):
        self.drawn = (super()._draw(*given),)
        return self.drawn[0]


@pytest.mark.parametrize("profiling", ["probe", "rounds"])
@pytest.mark.cases(35, 100)
def test_tifl_to_the_letter(profiling, cases):
    for case in cases:
        luck = np.random.default_rng([case, len(profiling)])
        clients, tiers = int(luck.integers(2, 16)), int(luck.integers(1, 6))
        options = {"interval": int(luck.integers(1, 4)), "credits": luck.choice([None, 1, 3])}
        options |= {"tries": int(luck.integers(1, 3)), "timeout_s": luck.choice([None, 2.0])}
        options |= {"improvement": str(luck.choice(["relative", "absolute"]))}
        selector = Noted(int(luck.integers(1, clients + 1)), tiers=tiers, profiling=profiling, **options)
        letter = ToTheLetter(tiers, options)
        for number in range(1, 14):
            there = np.flatnonzero(luck.random(clients) < luck.choice([1, 0.7])).tolist()
            probe, answers = selector.probe(view_of(there, clients=clients, round=number), rng(number)), None
            asked = letter.open(there) if profiling == "probe" else []
            assert asked == ([] if probe is None else probe.client.tolist())
            present = [k for k in there if luck.random() < 0.9]
            if asked:
                heard = [k for k in asked if k in present and luck.random() < 0.8]
                work_s, up_s = luck.exponential(size=(2, len(heard)))
                answers = answers_of(heard, compute_s=work_s, uplink_s=up_s)
                took_s = dict(zip(heard, work_s + up_s, strict=True))
                for k in (k for k in asked if k in present):  # whoever has left is asked again
                    letter.learn(k, took_s.get(k))
            selector.drawn = ()
            credits_left = letter.credits.copy()
            view = view_of(present, clients=clients, round=number, answers=answers)
            client, tier = selector.select(view, rng(number)).client.tolist(), letter.tier()
            size, newcomers = min(selector.cohort, len(present)), letter.open(present)
            assert len(set(client)) == size
            if not size:
                continue
            if profiling == "rounds" and newcomers:
                least = sorted(letter.tries.get(k, 0) for k in present)[:size]
                assert sorted(letter.tries.get(k, 0) for k in client) == least
                assert not selector.drawn
            elif tier.keys() & set(present):
                letter.adapt(number)
                assert selector._chance == pytest.approx(letter.chance), (case, number)
                (letter.last,) = selector.drawn
                possible = [k for k in {tier[k] for k in present if k in tier} if letter.chance[k] and credits_left[k]]
                assert letter.last in possible or not possible
                letter.credits[letter.last] = max(letter.credits[letter.last] - 1, 0)
                away = {
                    k: abs(tier[k] - letter.last) + (tier[k] > letter.last) / 2 if k in tier else 99 for k in present
                }
                assert sorted(away[k] for k in client) == sorted(away.values())[:size]
            duration_s, loss = luck.exponential(size=(2, size))
            delivered = luck.random(size) < 0.8
            selector.observe(reports_of(client, duration_s, delivered=delivered, loss=loss, number=number))
            for k, took, arrived, value in zip(client, duration_s, delivered, loss, strict=True):
                letter.loss |= {k: value} if arrived else {}
                if profiling == "rounds" and letter.open([k]):
                    letter.learn(k, took if arrived else None)
