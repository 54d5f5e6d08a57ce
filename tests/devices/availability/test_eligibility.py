"""When a round can open: a client is online and meets all criteria."""

import math

import numpy as np
import pytest
from hypothesis import given, strategies as st

from fedsim.devices import Always, Bernoulli
from fedsim.devices.availability.on_off import Markov
from tests.support.media import of_crowd
from tests.support.worlds import available_in, batteries, charged


def test_laws_state_their_kind():
    always, drawn = of_crowd(Always(), 2), of_crowd(Bernoulli(probability=0.5), 2)
    markov = of_crowd(Markov(mean_on_s=1.0, mean_off_s=1.0), 2)
    assert [law.kind for law in (always, drawn, markov)] == ["timed", "per-draw", "timed"]
    assert charged(drawn, batteries([1.0, 1.0])).kind == "per-draw"
    whole = charged(always, batteries([1.0, 1.0]))
    assert whole.leaves_after_s(np.arange(2), 0.0, 1, np.ones(2)).tolist() == [math.inf] * 2


def test_a_draw_without_a_charged_client_is_repeated():
    """One of 50 clients is charged; tries are 2 s apart and show it with probability 0.2, so the mean wait is 8 s."""
    waits = []
    for seed in range(150):
        availability = of_crowd(Bernoulli(probability=0.2, retry_s=2.0), 50, seed)
        there = charged(availability, batteries([1.0] * 49 + [60.0], least=50.0))
        opens_s, draw = there.next_s(10.0, 3)
        assert there.available(np.arange(50), opens_s, draw).nonzero()[0].tolist() == [49]
        waits.append(opens_s - 10.0)
    assert all(wait % 2.0 == 0.0 for wait in waits)
    error_s = 2.0 * math.sqrt(0.8) / 0.2 / math.sqrt(150)  # of a geometric number of tries
    assert np.mean(waits) == pytest.approx(8.0, abs=5 * error_s)


def test_no_draw_is_repeated_before_a_client_is_charged():
    """At 1e-3 W the first of two has 50 J after 10^4 s; a draw each second would take long."""
    availability = of_crowd(Bernoulli(probability=1.0, retry_s=3.0), 2)
    there = charged(availability, batteries([40.0, 0.0], gain_w=1e-3, least=50.0))
    assert there.next_s(0.0, 1)[0] == 10_002.0
    assert charged(availability, batteries([40.0, 0.0], least=50.0)).next_s(0.0, 2)[0] == math.inf


stretches = st.lists(st.tuples(st.integers(0, 99), st.integers(1, 30)), max_size=4)


@given(
    st.lists(st.tuples(stretches, st.integers(0, 100)), min_size=1, max_size=5),
    st.sampled_from([-0.5, 0.0, 0.25, 2.0]),
    st.integers(0, 150),
    st.sets(st.integers(0, 4)),
)
def test_a_round_opens_when_a_search_through_all_instants_says(lines, gain_w, time_s, chosen):
    """The conditions change at multiples of a quarter of a second only (4 J at 0.25 W take 16 s, and so on)."""
    rows = [[(start, min(start + length, 100)) for start, length in row] for row, _ in lines]
    power = batteries([4.0 * (charge // 4) for _, charge in lines], gain_w=gain_w, least=60.0)
    there = charged(available_in(*rows, period_s=100.0), power)

    def free(now_s):
        return [
            any(start <= now_s % 100.0 < end for start, end in row)
            and min(100.0, 4.0 * (j // 4) + gain_w * now_s) >= 60.0
            for row, (_, j) in zip(rows, lines, strict=True)
        ]

    everyone = np.arange(len(lines))
    some = everyone[np.isin(everyone, [*chosen, 0])]
    part, looks_s = there.part(some), time_s + np.arange(4 * 700) / 4
    comes = np.array([free(now_s) for now_s in looks_s])
    for member, found in (
        (everyone, [there.next_s(float(time_s), 1)]),
        (some, [there.next_s(float(time_s), 1, some), part.next_s(float(time_s), 1)]),
    ):
        opens = comes[:, member].any(axis=1)
        expected = float(looks_s[opens.argmax()]) if opens.any() else math.inf
        assert [opens_s for opens_s, _ in found] == [expected] * len(found)
        for now_s in {float(time_s), expected} - {math.inf}:
            assert there.available(member, now_s, 1).tolist() == np.array(free(now_s))[member].tolist()
    assert part.available(some, float(time_s), 1).tolist() == comes[0, some].tolist()


def test_some_clients_only():
    """50 J are there after 30 and 35 s; and clients of a part of the crowd come in no later draw."""
    some, power = np.array([1, 2]), batteries([50.0, 20.0, 15.0], gain_w=1.0, least=50.0)
    always = of_crowd(Always(), 3)
    assert (always.next_s(5.0, 1, some)[0], always.next_s(5.0, 1, some[:0])[0]) == (5.0, math.inf)
    assert charged(always, power).next_s(0.0, 1, some)[0] == 30.0
    drawn = of_crowd(Bernoulli(probability=0.4), 3, 1)
    for round_ in range(1, 60):
        here = drawn.available(np.arange(3), 0.0, round_)
        both = charged(drawn, batteries([50.0, 20.0, 15.0], gain_w=1.0, least=50.0))
        assert drawn.next_s(7.0, round_, some)[0] == (7.0 if here[some].any() else math.inf)
        first_s = min([charged_s for charged_s, comes in ((30.0, here[1]), (35.0, here[2])) if comes], default=math.inf)
        assert both.next_s(7.0, round_, some)[0] == first_s
