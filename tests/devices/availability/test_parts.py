"""The availability of a part of the clients, as a crowd of its own."""

import math

import numpy as np
import pytest
from hypothesis import given, strategies as st

from fedsim.devices import Always, Bernoulli
from fedsim.devices.availability.on_off import Markov
from tests.support.media import of_crowd
from tests.support.worlds import available_in, batteries, charged

IDS = np.arange(4)


def test_a_part_opens_when_a_client_of_it_comes():
    whole = available_in(*[[(0, 10)], [(20, 30)], [(5, 8)], []])
    assert [whole.part(np.array(part)).next_s(0.0, 1)[0] for part in ([1], [1, 2], [0, 3], [3])] == [20, 5, 0, math.inf]
    part = whole.part(np.array([1, 2]))
    assert whole.next_s(12.0, 1)[0] == 20.0, "the whole is as it was"
    assert part.available(np.array([1, 2]), 6.0, 1).tolist() == [False, True]
    assert part.leaves_after_s(np.array([1, 2]), 6.0, 1, np.ones(2)).tolist() == [0.0, 2.0]
    always = of_crowd(Always(), 4).part(np.array([2]))
    assert (always.next_s(3.0, 1)[0], always.available(np.array([2]), 3.0, 1).tolist()) == (3.0, [True])


@given(st.lists(st.floats(0, 300), min_size=1, max_size=5), st.sets(st.integers(0, 7), min_size=1), st.integers(0, 3))
def test_parts_and_whole_say_the_same_of_each_client_in_whatever_order_they_are_asked(times_s, chosen, seed):
    law, member = Markov(mean_on_s=7.0, mean_off_s=30.0), np.array(sorted(chosen))
    asked_first, fresh = of_crowd(law, 8, seed), of_crowd(law, 8, seed)
    part = asked_first.part(member)
    for time_s in times_s:
        np.testing.assert_array_equal(part.available(member, time_s, 1), fresh.available(member, time_s, 1))
        opens_s = part.next_s(time_s, 1)[0]
        assert part.available(member, opens_s, 1).any()
        assert opens_s >= fresh.next_s(time_s, 1)[0]
        np.testing.assert_array_equal(
            asked_first.available(np.arange(8), opens_s, 1), fresh.available(np.arange(8), opens_s, 1)
        )


@pytest.mark.statistical
@pytest.mark.parametrize(("p", "clients", "part"), [(0.1, 50, (7, 30)), (0.05, 3, (0, 1, 2)), (0.05, 3, None)])
def test_draws_are_repeated_until_they_show_a_client_of_the_part(p, clients, part):
    """A draw shows one of two clients with p = 0.1 with q = 1 - 0.9^2 = 0.19, whatever the others of 50 do."""
    whole, rounds = of_crowd(Bernoulli(probability=p, retry_s=2.0), clients, 4), 2000
    member = np.array(part or (0, 1, 2))
    drawn = whole if part is None else whole.part(member)
    instants = [drawn.next_s(10.0, r) for r in range(1, rounds + 1)]
    tries = (np.array([time_s for time_s, _ in instants]) - 10.0) / 2.0
    there = np.array([drawn.available(member, *instant) for instant in instants])
    q = 1 - (1 - p) ** member.size
    assert there.any(axis=1).all()
    np.testing.assert_array_equal(tries, np.round(tries))
    for number in range(4):
        share = q * (1 - q) ** number
        assert (tries == number).mean() == pytest.approx(share, abs=5 * math.sqrt(share / rounds))
    # Given an available client, each is with p / q and two are with p^2 / q, whether the draw was repeated or not.
    for kept in (tries == 0, tries > 0):
        size = kept.sum()
        np.testing.assert_allclose(there[kept].mean(axis=0), p / q, atol=5 * math.sqrt(p / q * (1 - p / q) / size))
        both = p * p / q
        assert there[kept][:, [0, -1]].all(axis=1).mean() == pytest.approx(both, abs=5 * math.sqrt(both / size))


def test_the_part_of_all_clients_has_the_draws_of_the_whole_and_another_part_has_its_own():
    law = Bernoulli(probability=0.02, retry_s=1.0)
    whole, same = of_crowd(law, 4, 1), of_crowd(law, 4, 1).part(IDS)
    waits = [[availability.next_s(0.0, r)[0] for r in range(1, 60)] for availability in (whole, same)]
    assert waits[0] == waits[1]
    assert max(waits[0]) > 0
    pairs = [of_crowd(law, 4, 1).part(np.array(part)) for part in ([0, 1], [2, 3])]
    waits = [[availability.next_s(0.0, r)[0] for r in range(1, 60)] for availability in pairs]
    assert waits[0] != waits[1]


def test_a_part_waits_for_its_own_batteries():
    """40, 20, 0 and 45 J rise by 2 W; 50 J are needed."""
    power = batteries([40.0, 20.0, 0.0, 45.0], gain_w=2.0, least=50.0)
    whole = charged(of_crowd(Always(), 4), power)
    assert [whole.part(np.array(part)).next_s(0.0, 1)[0] for part in ([0, 1], [1, 2], [2])] == [5.0, 15.0, 25.0]
    assert whole.next_s(0.0, 1)[0] == 2.5
    # A draw every 3 s that always shows all clients: the first after 25 s is at 27 s.
    drawn = charged(of_crowd(Bernoulli(probability=1.0, retry_s=3.0), 4), power)
    assert drawn.part(np.array([2])).next_s(0.0, 1)[0] == 27.0
