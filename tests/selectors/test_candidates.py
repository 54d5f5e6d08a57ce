"""A view that takes columns when they are read shows what a view of all columns shows."""

import numpy as np
import pytest

from fedsim.rounds import Knowledge
from fedsim.rounds.server.crowd import CandidateSet
from fedsim.selectors import All, Cohort, SelectorPort, Uniform
from fedsim.selectors.baselines import RoundRobin
from fedsim.selectors.candidates import ask

K = 50
COLUMNS = ("client", "samples", "participations", "last_duration_s", "last_loss", "privacy_spent", "features")


def crowd(seed=0):
    """Return what a server knows of 50 clients, and its candidates, about half of them."""
    rng = np.random.default_rng(seed)
    knowledge = Knowledge(rng.integers(1, 9, K), None, rng.random((K, 2)))
    knowledge.participations[:] = rng.integers(0, 5, K)
    knowledge.last_duration_s[:] = rng.random(K)
    knowledge.last_loss[:] = rng.random(K)
    kept = CandidateSet(np.arange(K), whole_crowd=True)
    kept.put(np.arange(K), rng.random(K) < 0.5)
    return knowledge, kept


def same(one, other):
    for column in COLUMNS:
        np.testing.assert_array_equal(getattr(one, column), getattr(other, column))
        assert not getattr(one, column).flags.writeable
    for name in ("round", "time_s", "clients", "wanted", "total_samples", "privacy_budget", "answers", "count"):
        assert getattr(one, name) == getattr(other, name)


def at_edge(kept, members):
    """Return the same candidates at an edge server with these clients."""
    there = CandidateSet(members, whole_crowd=False)
    there.put(np.arange(members.size), np.isin(members, kept.everyone()))
    return there


@pytest.mark.parametrize("members", [None, np.flatnonzero(np.random.default_rng(5).random(K) < 0.6)])
def test_every_column_and_every_answer_is_that_of_the_plain_view(members):
    knowledge, kept = crowd()
    kept = kept if members is None else at_edge(kept, members)
    views = knowledge.view_of(3, 7.0, kept, 2), knowledge.view(3, 7.0, kept.everyone(), 2)
    view, plain = views if members is None else (one.at_edge(members, 99) for one in views)
    ids = np.arange(-3, K + 3)
    assert [view.below(client) for client in ids.tolist()] == [plain.below(client) for client in ids.tolist()]
    np.testing.assert_array_equal(view.includes(ids), plain.includes(ids))
    np.testing.assert_array_equal(view.includes(ids), np.isin(ids, plain.client))
    np.testing.assert_array_equal(view.pick(np.array([4, 0])), plain.client[[4, 0]])
    assert "samples" not in vars(view)
    assert plain.clients == (K if members is None else members.size)
    same(view, plain)


@pytest.mark.parametrize("make", [All, lambda: Uniform(4), lambda: Uniform(60), lambda: RoundRobin(4)])
def test_selectors_choose_alike_from_both(make):
    knowledge, kept = crowd()
    lazy, plain = make(), make()
    for number in range(1, 9):
        views = (knowledge.view_of(number, 0.0, kept), knowledge.view(number, 0.0, kept.everyone()))
        chosen = [
            selector.select(view, np.random.default_rng(number)).client.tolist()
            for selector, view in zip((lazy, plain), views, strict=True)
        ]
        assert chosen[0] == chosen[1]


def test_a_uniform_draw_is_the_choice_among_the_ids():
    knowledge, kept = crowd()
    for seed in range(20):
        chosen = Uniform(3).select(knowledge.view_of(1, 0.0, kept), np.random.default_rng(seed)).client
        among = np.random.default_rng(seed).choice(kept.everyone(), size=3, replace=False)
        assert chosen.tolist() == sorted(among.tolist())


def test_a_uniform_draw_reads_no_column():
    knowledge, kept = crowd()
    view = knowledge.view_of(1, 0.0, kept)
    SelectorPort.of(Uniform(3)).select(view, np.random.default_rng(0))
    assert not [column for column in COLUMNS if column in vars(view)]


class Keeps:
    """Keeps each view and reads no column."""

    def __init__(self):
        self.views = []

    def select(self, view, rng):
        self.views.append(view)
        return Cohort(view.pick(np.array([0])))

    def observe(self, reports):
        pass


@pytest.mark.parametrize("first", [None, 10])
def test_a_view_that_is_kept_shows_what_was_known_then(first):
    """Also at an edge server, of the clients from the tenth on."""
    knowledge, kept = crowd()
    keeps, members = Keeps(), np.arange(first or 0, K)
    port = SelectorPort.of(keeps)
    if first:
        kept, port = at_edge(kept, members), port.at_edge(members, knowledge.samples)
    before = knowledge.view(1, 0.0, kept.everyone())
    cohort = ask(port.select, [knowledge.view_of(1, 0.0, kept)], np.random.default_rng(0))
    assert cohort.client.tolist() == before.client[:1].tolist()
    knowledge.sent(np.arange(K))
    kept.put(np.arange(members.size), np.zeros(members.size, dtype=bool))
    same(keeps.views[0], before.at_edge(members, knowledge.samples[members].sum()) if first else before)
    assert keeps.views[0].pick(np.array([1])).tolist() == [before.client[1] - members[0]]


def test_a_view_that_is_not_kept_takes_no_column(monkeypatch):
    knowledge, kept = crowd()
    monkeypatch.setattr(CandidateSet, "everyone", None)
    ask(SelectorPort.of(Uniform(3)).select, [knowledge.view_of(1, 0.0, kept)], np.random.default_rng(0))
