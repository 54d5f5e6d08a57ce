"""Stations of a wireless LAN: the performance anomaly by hand, and contention that grows with them."""

import heapq

import numpy as np
import pytest
from simpy import Environment

from fedsim import simulate
from fedsim.network.medium.spectrum import SharedSpectrum
from fedsim.network.medium.wifi import Contention, Dcf, RateFair, transmission_probability
from fedsim.testing import check_discipline
from tests.support.media import played
from tests.support.short_runs import TIMING

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


def ends(rule, sends):
    """Return the ends of transfers of (start, bits, efficiency) over 1 Hz."""
    env = Environment()
    lines = [(number, start_s, of_bits, None) for number, (start_s, *of_bits) in enumerate(sends)]
    ended_s, _ = played(env, SharedSpectrum(env, 1.0, rule()).send, lines)
    return [ended_s[number] for number in range(len(sends))]


def test_a_slow_station_holds_a_fast_one_back():
    """11 and 1 Mbit/s: both have 1 / (1/11 + 1/1) = 11/12 Mbit/s (Heusse et al., 2003)."""
    assert ends(RateFair, [(0, 11.0, 11.0), (0, 5.5, 1.0)])[1] == pytest.approx(5.5 / (11 / 12))
    # After 6 s the slow one has its 5.5 Mbit, and the fast one sends the rest alone.
    assert ends(RateFair, [(0, 11.0, 11.0), (0, 5.5, 1.0)])[0] == pytest.approx(6.0 + 5.5 / 11)


def test_stations_lose_time_to_one_another():
    """n stations with equal bits end together, after the time of one channel over S(n) / S(1)."""
    channel = Contention(2e-3, 118e-6, 9e-6, 16, 6)
    for stations in (1, 5, 40):
        together = ends(Dcf, [(0, 8.0, 4.0)] * stations)
        share = channel.carried_share(stations) / channel.carried_share(1)
        np.testing.assert_allclose(together, stations * 2.0 / share, rtol=1e-9)


def test_the_contract_is_kept_with_options():
    check_discipline(lambda: Dcf(frame_s=1e-4, window=32), jobs=5)


def mean_round_s(**network):
    scenario = TIMING.replace(
        {
            "crowd": {"clients": 20, "placement": {"kind": "disc", "radius_m": 15.0}},
            "learning": {"kind": "none", "model_bits": 1e6, "samples_per_client": 1},
            "network": network,
            "selector.cohort": 20,
        }
    )
    return simulate(scenario.replace({"rounds.count": 2, "results.audit": True})).column("rounds", "duration_s").mean()


def test_a_scenario_names_them():
    fair, contended, hasty = (
        mean_round_s(kind="wifi-dcf", uplink={"sharing": sharing})
        for sharing in ("rate-fair", "dcf", {"kind": "dcf", "window": 2, "doublings": 0})
    )
    assert fair < contended < hasty
    assert contended == mean_round_s(kind="wifi-dcf")
