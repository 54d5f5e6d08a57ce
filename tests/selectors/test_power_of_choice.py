"""Power-of-choice in its three forms, by hand."""

import numpy as np
import pytest

from fedsim.selectors.power_of_choice import AdaPowD, CpowD, PowD, RpowD
from tests.support.views import answers_of, check_shares, rng, view_of


def test_losses_that_were_heard_decide():
    view = view_of(10, answers=answers_of([1, 4, 6, 7], loss=[0.3, 0.9, 0.1, 0.5]))
    cohort = PowD(2, candidates=4).select(view, rng())
    assert cohort.client.tolist() == [4, 7]
    assert cohort.weights.tolist() == [0.5, 0.5]
    assert PowD(2, weights="samples").select(view, rng()).weights is None
    view = view_of(4, answers=answers_of([0, 1, 2], loss=[np.nan, 0.1, 0.2]))
    assert PowD(2).select(view, rng()).client.tolist() == [1, 2], "a loss that is no number comes last"
    view = view_of(5, last_loss=[0.4, np.nan, 0.9, 0.8, 0.1])
    assert RpowD(1, candidates=5).select(view, rng()).client.tolist() == [1], "those never heard come first"
    assert RpowD(3, candidates=5).select(view, rng()).client.tolist() == [1, 2, 3]


@pytest.mark.parametrize(("candidates", "asked"), [(None, 6), (4, 4), (50, 10)])
def test_pow_d_asks_d_candidates_for_their_loss(candidates, asked):
    probe = PowD(3, candidates=candidates, up_bits=64.0, wait_s=2.0).probe(view_of(range(5, 15)), rng())
    assert len(set(probe.client.tolist())) == asked
    assert set(probe.client.tolist()) <= set(range(5, 15))
    assert (probe.asks, probe.down_bits, probe.up_bits, probe.samples, probe.wait_s) == ("loss", None, 64.0, None, 2.0)


def test_who_is_asked_and_for_what():
    probe = CpowD(3, samples=20).probe(view_of(10), rng())
    assert (probe.samples, probe.client.size) == (20, 6)
    view = view_of(8, samples=[0, 5, 0, 5, 5, 0, 0, 5])
    assert {tuple(PowD(2).probe(view, rng(seed)).client.tolist()) for seed in range(20)} == {(1, 3, 4, 7)}


@pytest.mark.parametrize(("candidates", "there"), [(3, 10), (2, 10), (None, 3), (None, 1)])
def test_nobody_is_asked_where_losses_would_not_matter(candidates, there):
    selector = PowD(3, candidates=candidates)
    assert selector.probe(view_of(there), rng()) is None
    assert selector.select(view_of(there), rng()).client.size == min(3, there)


def test_places_left_over_go_to_those_not_asked_and_then_to_the_silent():
    selector, view = PowD(3, candidates=5), view_of(6)
    asked = selector.probe(view, rng()).client
    spare = np.setdiff1d(view.client, asked)
    assert spare.size == 1
    heard = view_of(6, answers=answers_of(asked[1:2], loss=[0.2]))
    chosen = selector.select(heard, rng()).client
    assert {int(asked[1]), int(spare[0])} <= set(chosen.tolist())
    assert chosen.size == 3
    nobody = view_of(6, answers=answers_of([], loss=[]))
    assert int(spare[0]) in selector.select(nobody, rng()).client.tolist()


def test_rpow_d_takes_clients_that_were_tried_and_never_delivered_last():
    """Client 1 was never tried; 2 was, twice; 4 delivered an update whose loss is not known, as without learning."""
    view = view_of(
        5,
        last_loss=[0.4, np.nan, np.nan, 0.8, np.nan],
        participations=[1, 0, 2, 3, 1],
        last_duration_s=[1.0, np.nan, np.nan, 1.0, 1.0],
    )
    chosen = [RpowD(size, candidates=5).select(view, rng()).client.tolist() for size in (2, 3, 4)]
    assert chosen == [[1, 4], [1, 3, 4], [0, 1, 3, 4]]


@pytest.mark.statistical
def test_rpow_d_only_looks_at_d_candidates():
    """m = 1 and d = 2 of four equal clients: the worst is among them half of the time, the best never wins."""
    view, draws = view_of(4, last_loss=[4.0, 3.0, 2.0, 1.0]), rng()
    check_shares(lambda: RpowD(1, candidates=2).select(view, draws).client, [3 / 6, 2 / 6, 1 / 6, 0.0])


@pytest.mark.parametrize("selector", [PowD(3), RpowD(3), CpowD(3, samples=5)])
def test_wanted_takes_the_place_of_the_cohort(selector):
    view = view_of(20, wanted=5)
    assert selector.select(view, rng()).client.size == 5
    assert not hasattr(selector, "probe") or selector.probe(view, rng()).client.size == 10


@pytest.mark.statistical
def test_rpow_d_draws_its_candidates_in_proportion_to_data():
    """One of four with 4, 3, 2 and 1 samples; with d = m = 1 losses do not matter."""
    view, draws = view_of(4, samples=[4, 3, 2, 1], last_loss=[1.0, 9.0, 9.0, 9.0]), rng()
    check_shares(lambda: RpowD(1, candidates=1).select(view, draws).client, [0.4, 0.3, 0.2, 0.1])


def asked(selector, rounds, clients=10):
    questions = [selector.probe(view_of(clients, round=number), rng()) for number in rounds]
    return [0 if question is None else question.client.size for question in questions]


def test_d_falls_linearly_or_geometrically_to_m_and_then_no_client_is_asked():
    # From 10 to 2 in four equal steps, and from 8 to 2 by factors of a half.
    assert asked(AdaPowD(2, until=5), range(1, 8)) == [10, 8, 6, 4, 0, 0, 0]
    assert asked(AdaPowD(2, first=6, until=3), range(1, 4)) == [6, 4, 0]
    assert asked(AdaPowD(2, first=8, until=3, decay="geometric"), range(1, 4), 20) == [8, 4, 0]
