"""Bianchi's model against a simulation slot by slot, written here, and against closed forms."""

import heapq

import numpy as np
import pytest

from fedsim.network.medium.wifi import Contention, transmission_probability

CHANNEL = Contention(2e-3, 118e-6, 9e-6, 16, 6)


def slot_by_slot(stations, contention, frames, seed=0):
    """Return the share of time with payload: stations count slots down, idle or busy, and draw anew after a frame."""
    rng = np.random.default_rng(seed)
    stage, due = np.zeros(stations, dtype=int), []
    for station in range(stations):
        heapq.heappush(due, (int(rng.integers(contention.window)), station))
    slot, time_s, carried_s = 0, 0.0, 0.0
    for _ in range(frames):
        first = due[0][0]
        time_s += (first - slot) * contention.idle_slot_s + contention.frame_s + contention.overhead_s
        slot, sends = first + 1, []
        while due and due[0][0] == first:
            sends.append(heapq.heappop(due)[1])
        carried_s += contention.frame_s * (len(sends) == 1)
        for station in sends:
            stage[station] = 0 if len(sends) == 1 else min(stage[station] + 1, contention.doublings)
            heapq.heappush(due, (slot + int(rng.integers(contention.window * 2 ** stage[station])), station))
    return carried_s / time_s


@pytest.mark.statistical
@pytest.mark.parametrize("stations", [1, 2, 5, 20, 60])
def test_saturation_throughput_is_that_of_stations_slot_by_slot(stations):
    """The model takes collisions as independent of the window, which is off by less than 2 % here."""
    runs = np.array([slot_by_slot(stations, CHANNEL, 4000, seed) for seed in range(6)])
    slack = 5 * runs.std(ddof=1) / np.sqrt(runs.size)
    assert CHANNEL.carried_share(stations) == pytest.approx(runs.mean(), rel=0.02, abs=slack)


def test_a_station_alone_waits_for_half_a_window():
    """Without collisions: 7.5 slots before each frame, as in the rate of the preset."""
    assert transmission_probability(1, 16, 6) == pytest.approx(2 / 17)
    assert CHANNEL.carried_share(1) == pytest.approx(2000 / 2185.5, rel=1e-12)


@pytest.mark.parametrize("stations", [2, 7, 50])
def test_without_doubling_the_probability_is_known(stations):
    """With m = 0 every backoff has the same mean, whatever collides: tau = 2 / (W + 1)."""
    assert transmission_probability(stations, 32, 0) == pytest.approx(2 / 33)


@pytest.mark.parametrize("stations", [2, 10, 300])
def test_the_solution_solves_both_equations(stations):
    tau = transmission_probability(stations, 16, 6)
    p = 1 - (1 - tau) ** (stations - 1)
    assert tau == pytest.approx(2 * (1 - 2 * p) / ((1 - 2 * p) * 17 + p * 16 * (1 - (2 * p) ** 6)), rel=1e-9)
