"""What selectors do at an asynchronous server: it asks for one client when another is done, and reports some twice."""

import math

import numpy as np
import pytest

from fedsim import simulate
from fedsim.selectors import FedSuv, Oort, OortFedScale
from fedsim.selectors.baselines import Soonest
from fedsim.selectors.divfl import DivFl
from fedsim.selectors.in_flight import InFlight
from fedsim.selectors.refl.refl import Refl
from tests.support.short_runs import TIMING
from tests.support.views import measured_reports_of, replace_one_by_one, rng, view_of

CLIENTS, CONCURRENCY = 60, 10


def test_who_is_at_work_by_hand():
    at_work = InFlight()
    at_work.heard(measured_reports_of([3]))  # of nobody that was met
    at_work.meet(view_of(6))
    assert at_work.share(3) == 1
    at_work.sent(np.array([1, 2, 4]))
    assert at_work.share(1) == 1 / 4
    at_work.heard(measured_reports_of([2]))
    assert at_work.client.tolist() == [1, 4]
    at_work.meet(view_of([0, 1, 2], clients=6, round=2))  # 1 is free: it has delivered and is reported on later
    at_work.sent(np.array([1]))
    at_work.heard(measured_reports_of([1]))
    assert at_work.client.tolist() == [1, 4]  # 1 works again
    at_work.heard(measured_reports_of([1, 4, 4]))
    assert at_work.client.size == 0
    assert at_work.share(0) == 0


@pytest.mark.parametrize(("method", "least"), [(Oort, 0.2), (OortFedScale, 0.3)])
def test_oort_explores_its_share_of_the_questions(method, least):
    """With a constant epsilon e every 1 / e-th question is answered by exploring, until everybody has been tried."""
    options = {"exploration": least, "exploration_decay": 1.0, "exploration_least": least}
    selector, tried, explored = method(CONCURRENCY, blacklist_after=None, **options), set(), []
    for chosen in replace_one_by_one(selector, CLIENTS, CONCURRENCY, 101):
        explored.append(len(set(chosen.tolist()) - tried))
        tried |= set(chosen.tolist())
    steps = np.cumsum(explored[1:])
    expected = np.arange(1, 101) * least
    assert np.all(np.abs(steps - expected) <= 1 + 1e-6)


@pytest.mark.parametrize("method", [Oort, OortFedScale])
def test_epsilon_decays_as_much_in_ten_questions_as_in_a_round_of_ten(method):
    selector = method(CONCURRENCY, exploration=0.8, exploration_decay=0.5, exploration_least=0.0)
    for _ in replace_one_by_one(selector, CLIENTS, CONCURRENCY, 21):
        pass
    assert selector._epsilon == pytest.approx(0.8 * 0.5**3)


def test_pacers_move_once_a_round():
    fedscale, paper = OortFedScale(2, pacer_step=1, pacer_delta=5.0), Oort(2, window=1, pacer_step_s=2.0)
    for selector in (fedscale, paper):
        selector.select(view_of(8), rng())
    for gain in (5.0, 2.0):
        paper.observe(measured_reports_of([0], loss_rms=gain))
    for _ in range(3):
        fedscale.select(view_of(8, round=2, wanted=1), rng())
        paper.select(view_of(8, round=3, wanted=1), rng())
    assert (fedscale._percentile, paper.preferred_s()) == (35.0, 2 * 2.0)


def test_fedsuv_takes_the_widest_once_in_a_cohort():
    """Ten at work; each tenth client selected is the widest, the others have the highest bounds of utility."""
    selector, widest = FedSuv(CONCURRENCY, rho=0.0, utility_scale=1.0, keep=CLIENTS), []
    for chosen in replace_one_by_one(selector, CLIENTS, CONCURRENCY, 41, loss_rms=np.linspace(0, 1, CLIENTS)):
        if chosen.size == 1:
            widest.append(selector._in_flight._owed < 1e-6)
    assert np.flatnonzero(widest).tolist() == [9, 19, 29, 39]


def test_fedsuv_keeps_as_many_as_are_at_work():
    """All but one have failed for sure: with four at work and one asked for five stay, not the one alone."""
    selector = FedSuv(4, utility_scale=1.0)
    working = selector.select(view_of(10), rng()).client
    for client in range(10):
        for _ in range(80):
            selector._beliefs.observe(np.array([client]), np.array([client == 0]), np.array([np.nan]))
    selector.select(view_of(np.setdiff1d(np.arange(10), working), clients=10, round=2, wanted=1), rng())
    assert selector.left.size == 5
    assert 0 in selector.left


@pytest.mark.parametrize("features", [None, np.linspace(0, 1, 4)])
def test_a_client_reported_twice_is_learned_twice(features):
    """FedBuff reports whoever delivered twice between two versions twice; that is as good as one after the other.

    All that is known is learned anew when the other half of the crowd comes.
    """
    client, delivered, utility = [0, 1, 0, 0], np.array([True, True, True, False]), np.array([2.0, 5.0, 4.0, 0.0])
    at_once, apart = (FedSuv(1, noise=0.5, utility_scale=100.0, keep=4) for _ in range(2))
    for selector in (at_once, apart):
        selector.select(view_of([0, 1], clients=4, features=features), rng())
    at_once.observe(measured_reports_of(client, delivered, utility))
    for i in range(4):
        apart.observe(measured_reports_of(client[i : i + 1], delivered[i], utility[i]))
    for selector in (at_once, apart):
        selector.select(view_of(4, round=2, features=features), rng())
    found, expected = (selector.rectangle(np.arange(4)) for selector in (at_once, apart))
    for side, right in zip(vars(found).values(), vars(expected).values(), strict=True):
        np.testing.assert_allclose(side, right)
    if features is None:  # two deliveries of three tries; utilities 2, 4 and 0 with precision 1 + 3 / 0.25
        assert found.validity_low[0] + found.validity_high[0] == pytest.approx(2 * 2 / 4)
        assert found.utility_low[0] + found.utility_high[0] == pytest.approx(2 * 4 * 6 / 13)


def test_divfl_counts_those_at_work_as_chosen():
    """On a line 0, 1, 2, 10, 11 the one in the middle is 2; with it at work, 3 and 4 shorten the sum most."""
    selector = DivFl(2, start="zero")
    reports = measured_reports_of(range(5))
    reports.measured["update"] = np.array([[0.0], [1.0], [2.0], [10.0], [11.0]], dtype=np.float32)
    selector.select(view_of(5), rng())
    selector.observe(reports)
    assert selector.select(view_of(5, round=2, wanted=1), rng()).client.tolist() == [2]
    chosen = [
        selector.select(view_of([0, 1, 3, 4], clients=5, round=2, wanted=1), rng(seed)).client[0] for seed in range(9)
    ]
    assert set(chosen) == {3, 4}


@pytest.mark.statistical
def test_refl_selects_evenly_where_everybody_is_always_there():
    """Whoever is at work is there: 50 clients, 10 at work, 600 questions, 12 each; five standard errors of chance."""
    times = np.zeros(50)
    for chosen in replace_one_by_one(Refl(10, hold_off=0), 50, 10, 600):
        times[chosen] += 1
    assert np.all(np.abs(times - times.mean()) < 5 * math.sqrt(times.mean()))


@pytest.mark.statistical
@pytest.mark.parametrize("clients", [9, 13])
def test_refl_breaks_ties_of_equal_histories_at_random(clients):
    """Sums of equal numbers differ in their last bits where a crowd is no multiple of what a processor adds at once."""
    times = np.zeros(clients)
    selector = Refl(1, hold_off=0)
    for number in range(1, 601):
        chosen = selector.select(view_of(clients, round=number, time_s=17.3 * number), rng(number)).client
        selector.observe(measured_reports_of(chosen, number=number))
        times[chosen] += 1
    assert np.all(np.abs(times - 600 / clients) < 5 * math.sqrt(600 / clients))


@pytest.mark.parametrize("policy", [{"kind": "fedasync", "concurrency": 3}, {"kind": "wait-for-all"}])
def test_the_oracle_of_coming_durations_is_right(policy):
    told = {}

    class Listening(Soonest):
        def select(self, view, rng):
            cohort, coming_s = super().select(view, rng), view.coming_duration_s()
            for client in cohort.client.tolist():
                told.setdefault(client, []).append(coming_s[np.searchsorted(view.client, client)])
            return cohort

    down, up = ({"kind": "shifted-exponential", "shift_s": 0.0, "scale_s": scale_s} for scale_s in (0.1, 0.2))
    tables = {
        "learning": {"kind": "none", "model_bits": 1e5, "samples_per_client": 50},
        "network": {"kind": "latency", "downlink": down, "uplink": up},
        "devices.compute": {"kind": "rate", "samples_per_s": 60.0, "jitter_sigma": 0.5},
    }
    tables |= {"rounds.count": 20, "rounds.policy": policy, "selector": Listening(3)}
    history = simulate(TIMING.replace(tables))
    delivered = history.column("participations", "outcome") == "delivered"
    took_s = history.column("participations", "end_s") - history.column("participations", "start_s")
    client = history.column("participations", "client")
    assert np.count_nonzero(delivered) >= 20
    for k in np.unique(client).tolist():
        mine = client == k
        np.testing.assert_allclose(took_s[mine & delivered], np.array(told[k])[delivered[mine]])
