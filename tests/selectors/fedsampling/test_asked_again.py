"""A client that is asked again for its number of samples: one answer where it pays once, fresh ones where it pays."""

import numpy as np
import pytest

from fedsim import simulate
from fedsim.rounds import WaitForAll
from fedsim.selectors import Probe, RandomizedResponse
from fedsim.selectors.fedsampling.fedsampling import FedSampling
from tests.support.short_runs import TIMING
from tests.support.worlds import Everybody, FixedLinks, serve

CLIENTS = 40
RESPONSE = RandomizedResponse(300, 0.1)
FAST, WORLD = [1.0] * CLIENTS, (WaitForAll(), *([1.0] * CLIENTS for _ in range(3)))


class LostAtFirst(FixedLinks):
    """The first message up of every second client takes 50 s, and all others a second."""

    def __init__(self):
        super().__init__(FAST, FAST)
        self.sent = set()

    def uplink_s(self, client, draw, start_s, bits):
        slow = [one % 2 == 1 and one not in self.sent for one in client.tolist()]
        self.sent |= set(client.tolist())
        return np.where(slow, 50.0, 1.0)


class Heard(FedSampling):
    """Notes what each client has answered, with the round."""

    def __init__(self, **options):
        super().__init__(samples=60, epsilon=1.0, **options)
        self.heard = {}

    def select(self, view, rng):
        if view.answers is not None:
            for client, answer in zip(view.answers.client.tolist(), view.answers.samples.tolist(), strict=True):
                self.heard[client] = view.round, answer
        return super().select(view, rng)


class Asking(Everybody):
    """Asks everybody for its size in every round."""

    asks_sizes = True

    def __init__(self, once, unlinked):
        super().__init__()
        self.sizes_paid_once, self.sizes_unlinked, self.answers = once, unlinked, []

    def probe(self, view, rng):
        return Probe(client=view.client, asks="samples", up_bits=1.0, response=RESPONSE)

    def select(self, view, rng):
        self.answers.append(view.answers.samples.tolist())
        return super().select(view, rng)


def test_a_client_whose_answer_was_lost_gives_that_answer_when_it_is_asked_again():
    """Half of the answers are late in the first round: each is what would have arrived then."""
    _, lost, *_ = serve(*WORLD, links=LostAtFirst(), selector=Heard(query="once", wait_s=5.0), count=2, audit=False)
    _, all_there, *_ = serve(*WORLD, selector=Heard(query="once", wait_s=5.0), count=2, audit=False)
    numbers = {client: number for client, (number, _) in lost.heard.items()}
    assert numbers == {client: 1 + client % 2 for client in range(CLIENTS)}
    answers = {client: answer for client, (_, answer) in lost.heard.items()}
    assert answers == {client: answer for client, (_, answer) in all_there.heard.items()}
    assert len(set(answers.values())) > CLIENTS / 2, "most are drawn"


@pytest.mark.parametrize(
    ("once", "unlinked", "same"), [(True, False, True), (True, True, False), (False, False, False)]
)
def test_answers_that_cost_one_together_are_one_answer_unless_nothing_links_them(once, unlinked, same):
    _, asking, *_ = serve(*WORLD, selector=Asking(once, unlinked), count=3, audit=False)
    first, second, third = asking.answers
    assert (first == second == third) is same
    _, each, *_ = serve(*WORLD, selector=Asking(False, False), count=3, audit=False)
    assert same or asking.answers == each.answers, "the streams of answers that are drawn anew are the same"


def test_however_often_a_client_is_asked_it_has_spent_the_epsilon_of_one_answer():
    up = {"kind": "log-normal", "median_s": 0.5, "sigma": 0.7}
    budget = {"kind": "uniform", "epsilon": 20.0, "releases": 9}
    tables = {
        "crowd.clients": CLIENTS,
        "learning": {"kind": "none", "model_bits": 1e6, "samples_per_client": 50},
        "network": {"kind": "latency", "downlink": {"kind": "constant", "value_s": 0.1}, "uplink": up},
        "rounds.count": 4,
        "privacy": {"budget": budget, "mechanism": {"kind": "laplace-l1", "clip": 1.0}},
        "selector": {"kind": "fedsampling", "samples": 60, "epsilon": 1.0, "query": "once", "wait_s": 0.4},
    }
    probes = simulate(TIMING.replace(tables)).probes.to_pandas()
    begun = probes[probes.uplink_bits > 0].groupby("client")
    assert begun.size().max() == 4
    assert begun.epsilon.sum().tolist() == pytest.approx([1.0] * CLIENTS)
    assert begun.epsilon.first().tolist() == pytest.approx([1.0] * CLIENTS)
