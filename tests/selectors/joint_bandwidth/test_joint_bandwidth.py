"""Joint selection and division of the band: against all cohorts, against a plain greedy search, and in runs."""

from itertools import combinations

import numpy as np
import pytest

from fedsim import simulate
from fedsim.errors import FedsimError
from fedsim.selectors import Allocation, Cohort
from fedsim.selectors.joint_bandwidth.bandwidth import earliest_end
from fedsim.selectors.joint_bandwidth.joint_bandwidth import JointBandwidth, exact, greedy
from tests.support.families import by_default
from tests.support.short_runs import TIMING
from tests.support.views import rng, view_of

BITS, BAND = 1e6, 2e6


def crowd(seed, clients=8):
    rng = np.random.default_rng(seed)
    return rng.uniform(0, 2, clients), 10.0 ** rng.uniform(5, 8, clients)


def end_of(members, ready, snr):
    members = np.array(members)
    return earliest_end(BITS, ready[members], snr[members], BAND)[0]


@pytest.mark.parametrize("seed", by_default(range(5), [0, 1]))
def test_the_exact_search_finds_the_shortest_round_of_all_cohorts(seed):
    ready, snr = crowd(seed)
    best = min(end_of(members, ready, snr) for members in combinations(range(8), 3))
    assert end_of(exact(BITS, ready, snr, BAND, 3), ready, snr) == pytest.approx(best, rel=1e-9)


@pytest.mark.parametrize("seed", by_default(range(5), [0, 1]))
def test_the_greedy_search_adds_the_client_with_which_the_round_stays_shortest(seed):
    ready, snr = crowd(seed)
    taken = []
    for _ in range(4):
        taken.append(min(set(range(8)) - set(taken), key=lambda one: end_of([*taken, one], ready, snr)))
    assert greedy(BITS, ready, snr, BAND, 4).tolist() == taken


@pytest.mark.parametrize("search", ["greedy", "exact"])
def test_clients_out_of_reach_are_passed_over(search):
    """Client 0 never gets the model, and client 1 sends without noise: its upload takes about no time."""
    columns = {"snr_hz": np.array([1e9, np.inf, 1e4]), "allocates": True, "up_bits": BITS}
    columns["features"] = [[np.inf, 1, 1], [1, 1, 1], [0, 1, 1]]
    selector = JointBandwidth(1, BAND, search)
    assert selector.select(view_of(3, **columns), rng()).client.tolist() == [1]
    assert selector.planned_s == pytest.approx(2.0, rel=1e-2)
    assert not selector.select(view_of(3, **columns, wanted=0), rng()).client.size


def scenario(selector, network=None, **tables):
    """A cell in which Shannon's law holds as the plan has it: no fading, no ceiling, no waits."""
    cell = {
        "kind": "cell",
        "uplink": {"bandwidth_hz": 1e6},
        "path_loss": {"kind": "log-distance"},
        "fading": {"kind": "none"},
        "rate": {"kind": "shannon", "snr_gap_db": 0.0, "ceiling": "none"},
        "access": {"kind": "none"},
    }
    known = {
        "crowd": {"clients": 12, "placement": {"kind": "disc", "radius_m": 800.0}},
        "network": network if "kind" in (network or {}) else {**cell, **(network or {})},
        "devices": {"compute": {"kind": "rate", "samples_per_s": 100.0, "jitter_sigma": 0.0}},
        "learning": {"kind": "none", "model_bits": BITS, "samples_per_client": 50},
    }
    return TIMING.replace({"seed": 3, **known, "selector": selector, "rounds": {"count": 2}, **tables})


@pytest.mark.parametrize("search", ["greedy", "exact"])
def test_a_round_lasts_as_long_as_planned_and_all_uploads_end_together(search):
    planned = []

    class Noted(JointBandwidth):
        def observe(self, reports):
            planned.append(self.planned_s)

    history = simulate(scenario(Noted(4, BAND, search)))
    ends = history.column("participations", "end_s").reshape(2, 4)
    starts = history.column("participations", "start_s").reshape(2, 4)
    # Propagation takes up to 3 us, which the plan leaves out.
    np.testing.assert_allclose(ends - starts, np.array(planned)[:, None].repeat(4, axis=1), atol=1e-5)


class Prescribed:
    """A selector of some clients with an allocation."""

    def __init__(self, allocation=None) -> None:
        self.allocation = allocation

    def select(self, view, rng):
        return Cohort(view.client[:2], allocation=self.allocation)

    def observe(self, reports):
        pass


def phase(history, name):
    return history.column("participations", f"{name}_s")[:2]


def joules(history):
    return history.column("participations", "energy_j")[:2]


def test_bands_and_powers_make_the_rate_that_shannon_gives():
    plain = simulate(scenario(Prescribed()))
    half = simulate(scenario(Prescribed(Allocation(bandwidth_hz=np.array([5e5, 5e5])))))
    weak = simulate(scenario(Prescribed(Allocation(transmit_power_dbm=np.array([13.0, 13.0])))))
    facts = plain.tables()["clients"]
    snr = 10.0 ** (np.array(facts["uplink_snr_db"])[:2] / 10)
    delay = np.array(facts["distance_m"])[:2] / 299_792_458
    np.testing.assert_allclose(phase(plain, "uplink"), BITS / (1e6 * np.log2(1 + snr)) + delay, rtol=1e-9)
    np.testing.assert_allclose(phase(half, "uplink"), BITS / (5e5 * np.log2(1 + 2 * snr)) + delay, rtol=1e-9)
    np.testing.assert_allclose(phase(weak, "uplink"), BITS / (1e6 * np.log2(1 + snr / 10)) + delay, rtol=1e-9)
    np.testing.assert_array_equal(phase(half, "downlink"), phase(plain, "downlink"))


@pytest.mark.parametrize(
    "sending", [{"transmit_power_dbm": 23.0}, {"transmit_w": 1.2}], ids=["radiated power", "power of the sender"]
)
def test_seconds_and_joules_of_a_round_at_half_the_power_and_slower_clocks(sending):
    """By hand: seconds on the air, without propagation, times watts, and work at 2 W.

    The amplifier radiates 40 % of what it draws. At half the clock the work takes twice as long at an eighth of the
    power, so that it costs a fourth; at 0.8 of it 0.64.
    """
    battery = {"kind": "battery", "capacity_j": 1e5, "compute_w": 2.0, "receive_w": 0.9}
    battery |= {"amplifier_efficiency": 0.4, "circuit_w": 0.3, **sending}
    devices = {"compute": {"kind": "rate", "samples_per_s": [100.0] * 12, "jitter_sigma": 0.0}, "energy": battery}
    deadline = {"count": 1, "policy": {"kind": "deadline", "deadline_s": 60.0}}
    half_dbm = 23.0 - 10.0 * np.log10(2.0)
    clock = np.array([0.5, 0.8])
    half = Allocation(transmit_power_dbm=np.array([half_dbm, half_dbm]), cpu_frequency=clock)
    tables = {"devices": devices, "rounds": deadline, "results": {"audit": True}}
    full, less = (simulate(scenario(Prescribed(given), **tables)) for given in (None, half))
    full_w = 10.0**-0.7 / 0.4 + 0.3 if "transmit_power_dbm" in sending else 1.2
    half_w = 0.5 * 10.0**-0.7 / 0.4 + 0.3
    snr = 10.0 ** (np.array(full.tables()["clients"]["uplink_snr_db"])[:2] / 10)
    delay_s = np.array(full.tables()["clients"]["distance_m"])[:2] / 299_792_458
    for history, transmit_w, part, speed in ((full, full_w, 1.0, np.ones(2)), (less, half_w, 0.5, clock)):
        air_s = BITS / (1e6 * np.log2(1 + part * snr))
        due_j = 0.9 * (phase(history, "downlink") - delay_s) + 2.0 * 0.5 * speed**2 + transmit_w * air_s
        np.testing.assert_allclose(joules(history), due_j, rtol=1e-9)
        np.testing.assert_allclose(phase(history, "compute"), 0.5 / speed, rtol=1e-12)


def test_a_price_of_bits_does_not_know_the_power():
    bits = {"transmit_j_per_bit": 1e-6, "receive_j_per_bit": 0}
    battery = {"kind": "battery", "capacity_j": 1e5, "compute_w": 0.0, **bits}
    weak = Allocation(transmit_power_dbm=np.array([13.0, 13.0]))
    tables = {"devices": {"energy": battery}, "results": {"audit": True}}
    tables["rounds"] = {"count": 1, "policy": {"kind": "deadline", "deadline_s": 60.0}}
    np.testing.assert_allclose(joules(simulate(scenario(Prescribed(weak), **tables))), 1e-6 * BITS, rtol=1e-9)


@pytest.mark.parametrize(
    ("allocation", "said"),
    [
        (Allocation(bandwidth_hz=np.array([1e6])), "bandwidth_hz"),
        (Allocation(bandwidth_hz=np.array([1e6, 0.0])), "bandwidth_hz = 0"),
        (Allocation(cpu_frequency=np.array([0.5, 1.5])), "cpu_frequency"),
        (Allocation(transmit_power_dbm=np.array([10.0, 30.0])), "at most 23.0 dBm"),
        (np.ones(2), "an Allocation"),
    ],
)
def test_wrong_allocations_are_refused(allocation, said):
    with pytest.raises(FedsimError, match=said):
        simulate(scenario(Prescribed(allocation)))


ONE_S = {"kind": "constant", "value_s": 1.0}
LATENCY = {"kind": "latency", "downlink": ONE_S, "uplink": ONE_S}


@pytest.mark.parametrize("network", [{"uplink": {"sharing": "equal"}}, LATENCY])
def test_networks_without_bands_to_give_refuse_them(network):
    allocation = Allocation(bandwidth_hz=np.full(2, 1e5))
    with pytest.raises(FedsimError, match="dedicated"):
        simulate(scenario(Prescribed(allocation), network))


def test_without_radio_the_clients_of_least_declared_duration_are_taken():
    network = {**LATENCY, "spread_sigma": 0.5}
    selector = {"kind": "joint-bandwidth", "cohort": 3, "bandwidth_hz": BAND}
    taken = simulate(scenario(selector, network)).column("participations", "client")[:3]
    everyone = simulate(scenario({"kind": "all"}, network))
    took_s = sum(everyone.column("participations", f"{name}_s")[:12] for name in ("downlink", "compute", "uplink"))
    fastest = everyone.column("participations", "client")[:12][took_s.argsort()[:3]]
    assert sorted(taken.tolist()) == sorted(fastest.tolist())
