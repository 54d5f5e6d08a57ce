"""CS-UCB and CS-UCB-Q against their rules, client by client, in random situations."""

import math

import numpy as np
import pytest

from fedsim.errors import ScenarioError, SelectorError
from fedsim.selectors.cs_ucb import CsUcb, CsUcbQ
from tests.support.short_runs import TIMING
from tests.support.views import reports_of, rng, view_of

LONGEST_S = 5.0


def index_of(rewards, factor, number):
    """Mean reward and its confidence; a client never observed comes first."""
    return np.mean(rewards) + math.sqrt(factor * math.log(number) / len(rewards)) if rewards else math.inf


@pytest.mark.parametrize("fair", [False, True])
@pytest.mark.cases(45, 150)
def test_the_greatest_indices_win(fair, cases):
    for case in cases:
        luck = np.random.default_rng([case, fair])
        clients = int(luck.integers(1, 12))
        cohort, samples = int(luck.integers(1, clients + 2)), luck.integers(0, 9, clients) * luck.integers(0, 2)
        weight, promise = float(luck.choice([0.1, 0.0, 1.0, 0.5])), float(luck.choice([0.5, 1.0]))
        rates = luck.random(clients).tolist() if luck.random() < 0.3 else None
        selector = CsUcbQ(cohort, LONGEST_S, weight, promise, rates) if fair else CsUcb(cohort, LONGEST_S)
        rewards, queue, met, last, now = [[] for _ in samples], np.zeros(clients), np.zeros(clients, bool), [], 0
        for number in np.cumsum(luck.choice([0, 1, 1, 1, 2], 12)) + 1:
            there = np.flatnonzero(luck.random(clients) < luck.choice([1, 0.6]))
            met[there] = True
            # Candidates with data are promised a part by their data, all others an equal one.
            share = np.where(met & samples.any(), samples / max(samples.sum(), 1), 1 / clients)
            promised = np.minimum(promise * cohort * share, 1.0) if rates is None else np.array(rates)
            for _ in range(now, number):  # also for rounds without a selection
                queue = np.maximum(queue + promised - np.isin(np.arange(clients), last), 0)
                last = []
            now, wanted = number, None if luck.random() < 0.8 else int(luck.integers(0, clients + 1))
            known = {"samples": samples[there], "total_samples": int(samples.sum()), "wanted": wanted}
            view = view_of(there, clients=clients, round=int(number), **known)
            client = selector.select(view, rng(case)).client.tolist()
            if fair:
                index = {k: min(index_of(rewards[k], 2, number), 1.0) for k in there}
                index = {k: (1 - weight) * value + weight * queue[k] for k, value in index.items()}
            else:
                index = {k: index_of(rewards[k], cohort + 1, number) for k in there}
            size = min(cohort if wanted is None else wanted, there.size)
            assert len(set(client)) == size
            assert sorted(index[k] for k in client) == pytest.approx(sorted(index.values())[there.size - size :])
            last += client
            told = np.repeat(client, luck.integers(1, 3)).astype(np.int64)
            duration_s = luck.exponential(2.0, told.size)
            selector.observe(reports_of(told, duration_s, delivered=luck.random(told.size) < 0.7))
            for k, took_s in zip(told.tolist(), duration_s, strict=True):
                rewards[k].append(max(1 - took_s / LONGEST_S, 0.0))


def test_a_scenario_refuses_rates_that_do_not_fit_the_crowd():
    promising = {"crowd.clients": 3, "selector": {"kind": "cs-ucb-q", "cohort": 1, "rates": [0.1, 0.2, 0.3]}}
    assert TIMING.replace(promising)
    promising["selector"]["rates"] = [0.1, 0.2]
    with pytest.raises(
        ScenarioError, match=r"selector.rates: .*2 numbers; allowed: one for each client, crowd.clients = 3"
    ):
        TIMING.replace(promising)


def test_refuses_rates_that_do_not_fit_the_crowd():
    with pytest.raises(SelectorError, match=r"rates: 2 numbers.*3 clients"):
        CsUcbQ(1, rates=[0.1, 0.2]).select(view_of(3), rng())
    with pytest.raises(SelectorError, match=r"rates: 4 numbers.*3 clients of this server"):
        CsUcbQ(1, rates=[0.1, 0.2, 0.3, 0.4]).select(view_of(3), rng())
