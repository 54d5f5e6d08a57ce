"""SAFA: its picks, its cache and its deprecated clients, worked by hand."""

import random
from dataclasses import dataclass

import numpy as np
import pytest
from pydantic import ValidationError

from fedsim.rounds.policies.safa import Safa
from tests.support.plain_servers import PlainServer, at_least, random_world, served
from tests.support.stories import ends
from tests.support.worlds import Asking, CountingLearner, available_in, serve

# Three clients that take 3, 5 and 8 s.
THREE = ([1, 1, 2], [1, 2, 3], [1, 2, 3])


@dataclass
class Number:
    """A model that is one number."""

    version: int
    value: float
    digest: str = ""


class Halving(CountingLearner):
    """Client k trains a model w to w / 2 + 2 ** k."""

    def initial(self):
        return Number(0, 0.0)

    def updates(self, model, client, releases=None, work=None, repeat=0, level=None):
        super().updates(model, client, releases, work, repeat)
        return [2.0**k - model.value / 2 for k in client.tolist()]

    def trained(self, base, update):
        return Number(base.version + 1, base.value + update)

    def merge(self, models, weights, version=None):
        assert np.all(weights >= 0)
        assert sum(weights) == pytest.approx(1)
        merged = Number(version, float(np.dot([model.value for model in models], weights)))
        self.aggregated.append(merged.value)
        return merged


def run(policy, times=THREE, samples=None, **options):
    learner = Halving(np.full(len(times[0]), 10) if samples is None else np.array(samples))
    history, selector, *_ = serve(policy, *times, learner=learner, **options)
    return history, selector, learner


def fates(history):
    return [(row["round"], row["client"], row["fate"], row["staleness"]) for row in history.participations.to_pylist()]


class PlainSafa(PlainServer):
    """Rounds of SAFA; models are numbers, as those of `Halving`."""

    def __post_init__(self):
        super().__post_init__()
        clients = len(self.world.phases_s)
        self.quota = at_least(self.policy["share"], clients)
        self.models, self.cache, self.versions = [0.0], [0.0] * clients, [0] * clients
        self.in_flight, self.held, self.picked = {}, [], set()

    def overlaps(self):
        return bool(self.in_flight)

    def arrive(self):
        """A lost client stays in flight, as the server knows nothing of it."""
        super().arrive()
        self.in_flight = {client: one for client, one in self.in_flight.items() if one not in self.waiting}

    def open(self):
        if self.start_s is not None:
            return False
        super().open()
        if self.start_s is not None:
            lag = self.policy["lag"]
            for client, version in enumerate(self.versions):
                if self.version - version > lag:
                    self.versions[client], self.cache[client] = self.version, self.models[-1]
            for one in [one for one in self.running if self.version - one.version > lag]:
                self.running.remove(one)
                self.cut(one)
            self.in_flight = {c: one for c, one in self.in_flight.items() if self.version - one.version <= lag}
        return False

    def send(self):
        before = len(self.sent)
        super().send()
        for one in self.sent[before:]:
            self.in_flight[one.client], self.versions[one.client] = one, self.version

    def merges_cohort(self):
        if self.cohort is None:
            return False
        fresh = sorted((one for one in self.waiting if one not in self.held), key=self.sent.index)
        new = sum(one.client not in self.picked for one in fresh)
        if self.in_flight and new < self.quota and not self.has_come(self.sent_s + self.limit_s):
            return False
        for one in self.running:
            one.is_late = True
        if len(self.waiting) < self.minimum:
            for one in self.waiting:
                one.fate = "wasted-unmerged"
            self.waiting, self.held, self.picked = [], [], set()
            return True
        order = sorted(fresh, key=lambda one: (one.client in self.picked, one.end_s))
        chosen, beyond = order[: self.quota], order[self.quota :]
        self.picked = {one.client for one in chosen}
        bypassed = [one for one in self.held if one.client not in self.picked]
        for one in [*bypassed, *chosen]:
            self.cache[one.client] = self.models[one.version] / 2 + 2.0**one.client
        for one in fresh:
            self.versions[one.client] = self.version + 1
        for one in [one for one in self.held if one not in bypassed]:
            one.fate = "wasted-unmerged"
        self.merge([*bypassed, *chosen], [1 / len(self.cache)] * len([*bypassed, *chosen]))
        self.models.append(sum(self.cache) / len(self.cache))
        self.waiting, self.held = [*beyond], beyond
        return True

    def crash(self):
        crashes = any(abs(instant - self.now_s) < 1e-9 for instant in self.world.crashes_s)
        super().crash()
        if crashes:
            self.in_flight, self.held = {}, []


@pytest.mark.parametrize("seed", [*range(30), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(30, 100))])
def test_safa_does_what_a_plain_loop_does(seed):
    draw = random.Random(seed)  # noqa: S311
    options = {
        "share": draw.choice([0.1, 0.3, 0.5, 1.0]),
        "max_wait_s": draw.randint(4, 40) / 4,
        "lag": draw.randint(0, 3),
    }
    plain = PlainSafa(
        random_world(draw, waits_for_all=False), 7, {"kind": "safa", **options}, minimum=draw.randint(1, 2)
    )
    learner = Halving(np.full(len(plain.world.phases_s), 10))
    history, selector, _ = served(plain, Safa(**options), learner=learner)
    assert sorted(history.column("participations", "weight")) == pytest.approx(sorted(one.weight for one in plain.sent))
    assert learner.aggregated == pytest.approx(plain.models[1:])
    assert [(view.time_s, view.client.tolist()) for view in selector.views] == plain.views


def test_a_selector_that_asks_is_answered_while_others_are_at_work_too():
    """Client 2 is at work from 2 s to 32 s. Clients 0 and 1 answer within 2 s and take 3 s and 4 s.

    Client 0 arrives at 5 s and ends round 1; it is asked in round 2. Client 1 arrives at 6 s, so that both are sent at
    7 s, and the round is over. In round 3 nobody is left to be asked.
    """

    history, selector, _ = run(
        Safa(share=1 / 3, max_wait_s=20.0),
        ([1, 1, 1], [1, 2, 28], [1, 1, 1]),
        selector=Asking(asks="resources", wait_s=2.0),
        count=3,
    )
    asked = [(row["round"], row["client"], row["start_s"]) for row in history.probes.to_pylist()]
    assert asked == [(1, 0, 0), (1, 1, 0), (1, 2, 0), (2, 0, 5)]
    seen = [(view.time_s, view.client.tolist(), view.answers.client.tolist()) for view in selector.views]
    assert seen == [(2, [0, 1, 2], [0, 1, 2]), (7, [0, 1], [0])]
    assert ends(history) == [5, 7, 10]


def test_a_limit_counts_from_the_end_of_a_question_though_nobody_was_sent_after_it():
    """Client 0 is there to 4 s: asked from 3 s on, it is gone. Client 1 arrives at 12 s, 7 s after that."""

    there = available_in([(0, 4)], [(0, 1000)])
    history, _, _ = run(
        Safa(share=0.5, max_wait_s=8.5),
        ([1, 4], [1, 4], [1, 4]),
        selector=Asking(asks="resources", rounds=(2,)),
        presence=there,
        count=2,
    )
    assert ends(history) == [3, 12]
    assert history.column("rounds", "ended_by").tolist() == ["enough", "enough"]
    assert history.critical_path().column("client").to_pylist() == [0, 1]


def test_picks_at_one_instant_do_not_depend_on_the_last_digits_of_the_clock():
    """Both take 0.6 s in two ways, and one of them is picked: the one that was sent first."""
    history, _, learner = run(Safa(share=0.5, max_wait_s=10.0), ([0.1, 0.3], [0.2, 0.2], [0.3, 0.1]))
    assert learner.aggregated == [0.5]
    assert fates(history)[0] == (1, 0, "used", 0)


def test_the_cache_is_weighted_by_samples_also_of_clients_that_have_none():
    _, _, learner = run(Safa(share=1.0, max_wait_s=10.0), samples=[30, 0, 10])
    assert learner.aggregated == [pytest.approx(0.75 * 1 + 0.25 * 4)]
    _, _, unknown = run(Safa(share=1.0, max_wait_s=10.0), samples=[0, 0, 0])
    assert unknown.aggregated == [pytest.approx((1 + 2 + 4) / 3)]


def test_a_negative_lag_is_refused():
    with pytest.raises(ValidationError, match="lag"):
        Safa(max_wait_s=1.0, lag=-1)
