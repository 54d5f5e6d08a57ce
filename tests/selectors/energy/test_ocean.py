"""OCEAN: queues, order and objective by hand, all beginnings of the order by a plain loop, and in a run."""

from itertools import combinations

import numpy as np
import pytest
from scipy.optimize import minimize

from fedsim import simulate
from fedsim.selectors.energy.ocean import Ocean, fitting, least_energy_bands, power_share
from tests.support.short_runs import TIMING
from tests.support.views import rng, view_of

BITS, SECONDS, BAND = 1e6, 1.0, 2e6


def test_powers_by_hand():
    # 1e6 bits in 1 s: at 2 bit/s/Hz in 5e5 Hz an SNR of 3, of 6 at full power; at 1 in 1e6 Hz 1 of 4.
    share = power_share(BITS, SECONDS, np.array([3e6, 4e6]), np.array([5e5, 1e6]))
    np.testing.assert_allclose(share, [0.5, 0.25])


@pytest.mark.parametrize(
    ("snr", "weight", "least", "expected"),
    [
        ([1e7] * 4, [0.3] * 4, [1e4] * 4, [5e5] * 4),
        # Without weights what is left is divided equally, and who costs nothing gets its least band.
        ([1e6, 1e7], [0.0, 0.0], [1e6, 4e5], [1.3e6, 0.7e6]),
        ([1e7, 1e7], [0.0, 1.0], [3e5, 1e5], [3e5, 1.7e6]),
    ],
)
def test_bands_by_hand(snr, weight, least, expected):
    for bits in (BITS, BITS / 100):
        band = least_energy_bands(bits, SECONDS, np.array(snr), np.array(weight), np.array(least), BAND)
        np.testing.assert_allclose(band, expected, rtol=1e-9)


@pytest.mark.parametrize("seed", range(6))
def test_no_other_division_costs_less(seed):
    rng = np.random.default_rng(seed)
    snr, weight = 10.0 ** rng.uniform(6, 8, 4), 10.0 ** rng.uniform(-3, 1, 4)
    least = rng.uniform(1e5, 4e5, 4)

    def cost(mega):
        return np.log(float(weight @ power_share(BITS, SECONDS, snr, mega * 1e6)))

    band = least_energy_bands(BITS, SECONDS, snr, weight, least, BAND)
    assert band.sum() == pytest.approx(BAND, rel=1e-12)
    assert np.all(band >= least * (1 - 1e-12))
    found = minimize(
        cost,
        np.full(4, 0.5),
        method="SLSQP",
        bounds=[(low / 1e6, 2.0) for low in least],
        constraints={"type": "eq", "fun": lambda mega: mega.sum() - 2.0},
        options={"ftol": 1e-12, "maxiter": 300},
    )
    assert cost(band / 1e6) <= found.fun + 1e-7


# 30 dBm are 1 W; with 1e6 bits in 1 s in 1 MHz the SNR needed is 1.
PLAIN = {"bandwidth_hz": 1e6, "least_hz": 1e4, "budget_j": 0.1}


def radio(*snr_hz, **more):
    power_dbm = [30.0] * len(snr_hz)
    return {"snr_hz": list(snr_hz), "full_power_dbm": power_dbm, "up_bits": 1e6, "allocates": True, **more}


def test_one_client_by_hand():
    selector = Ocean(1, **PLAIN)
    cohort = selector.select(view_of(1, **radio(4e6)), rng())
    # The whole band, an SNR of 1 of 4: a quarter of 1 W, 6.02 dB below 30 dBm, for a second.
    assert cohort.allocation.bandwidth_hz.tolist() == [1e6]
    np.testing.assert_allclose(cohort.allocation.transmit_power_dbm, [30 - 10 * np.log10(4)], rtol=1e-9)
    np.testing.assert_allclose(selector.queue_j, [0.25])
    selector.select(view_of(1, round=2, **radio(4e6)), rng())
    np.testing.assert_allclose(selector.queue_j, [0.25 - 0.1 + 0.25])
    # Two rounds without a selection pay 0.2 J back, then a third one.
    selector.select(view_of(0, clients=1, round=5), rng())
    np.testing.assert_allclose(selector.queue_j, [0.4 - 0.3])


def test_full_powers_of_clients_by_hand():
    """Client 0 has 1 W and twice the SNR, client 1 has 0.1 W and needs a fifth of the energy."""
    view = view_of(2, **radio(8e6, 4e6, full_power_dbm=[30.0, 20.0]))
    selector = Ocean(1, **PLAIN)
    selector.select(view_of(0, clients=2), rng())
    selector.queue_j[:] = 0.1
    cohort = selector.select(view, rng())
    assert cohort.client.tolist() == [1]
    np.testing.assert_allclose(cohort.allocation.transmit_power_dbm, [20 - 10 * np.log10(4)], rtol=1e-9)
    np.testing.assert_allclose(selector.queue_j, [0.1, 0.1 + 0.025])


def test_a_limit_of_power_holds_beside_the_full_power():
    """An SNR of 1 takes the same power however it is limited; the limit decides who can send at all."""
    for most_dbm in (40.0, 27.0):
        cohort = Ocean(1, transmit_power_dbm=most_dbm, **PLAIN).select(view_of(1, **radio(4e6)), rng())
        np.testing.assert_allclose(cohort.allocation.transmit_power_dbm, [30 - 10 * np.log10(4)], rtol=1e-9)
    limited = Ocean(2, transmit_power_dbm=20.0, **PLAIN).select(view_of(2, **radio(4e6, 2e7)), rng())
    assert limited.client.tolist() == [1]


def test_a_frame_begins_with_empty_queues():
    selector = Ocean(1, frame=2, **PLAIN)
    for number in (1, 2, 3):
        selector.select(view_of(1, round=number, **radio(4e6)), rng())
    np.testing.assert_allclose(selector.queue_j, [0.25])


@pytest.mark.parametrize(("pattern", "eta"), [("uniform", 1.0), ("ascending", 0.4), ("descending", 1.6)])
def test_eta_by_hand(pattern, eta):
    """Of four rounds 0.4, 0.8, 1.2, 1.6; the mean is 1."""
    selector = Ocean(1, pattern=pattern, rounds=4)
    assert selector.eta(1) == pytest.approx(eta)
    assert np.mean([selector.eta(number) for number in range(1, 5)]) == pytest.approx(1.0)
    assert selector.eta(9) == selector.eta(4)


@pytest.mark.parametrize("powers_dbm", [[30.0] * 5, [30.0, 27.0, 23.0, 33.0, 30.0]])
@pytest.mark.parametrize("seed", range(4))
def test_the_best_beginning_of_the_order_is_the_best_of_all_sets(seed, powers_dbm):
    """Five clients, 31 sets: the theorem of the paper that an optimal set is a beginning, for clients that all fit."""
    draws = np.random.default_rng(seed)
    power_w = 10.0 ** (np.array(powers_dbm) / 10.0 - 3.0)
    snr, queue = 10.0 ** draws.uniform(6.7, 8, 5), draws.uniform(0, 1, 5)
    selector = Ocean(5, v=0.05, **PLAIN)
    selector.select(view_of(0, clients=5), rng())
    selector.queue_j[:] = queue
    chosen = selector.select(view_of(5, **radio(*snr, full_power_dbm=powers_dbm)), rng()).client.tolist()

    def worth(members):
        part = np.array(members)
        least = np.full(part.size, 1e4)
        band = least_energy_bands(1e6, 1.0, snr[part], queue[part] * power_w[part], least, 1e6)
        share = power_share(1e6, 1.0, snr[part], band)
        return -np.inf if np.any(share > 1) else 0.05 * part.size - float(queue[part] @ (power_w[part] * share))

    sets = [members for count in range(1, 6) for members in combinations(range(5), count)]
    assert worth(chosen) == pytest.approx(max(map(worth, sets)), rel=1e-9)


def test_clients_that_cannot_send_in_time_are_passed_over():
    # An SNR of 1 needs 1 MHz for 1e6 bits; 0.9e6 / ln 2 Hz carry less than 1.3 Mbit/s in any band.
    assert Ocean(3, **PLAIN).select(view_of(3, **radio(1e5, 1e8, 0.0)), rng()).client.tolist() == [1]
    assert fitting(np.array([2, 0, 1]), np.array([3.0, 9.0, 5.0]), 8.5, 3).tolist() == [2, 0]
    # No client can: declared energies decide, all 0 without batteries.
    assert Ocean(1, **PLAIN).select(view_of(2, **radio(1e5, 1e5)), rng()).allocation is None


def test_without_bands_declared_joules_are_the_energy():
    selector, columns = Ocean(3, budget_j=1.0, v=10.0), {"participation_j": [4.0, 1.0, 2.0]}
    assert selector.select(view_of(3, **columns), rng()).client.size == 3
    selector.queue_j[:] = [1.0, 9.0, 8.0]
    # Costs 4, 9 and 16 J^2 against 10 J^2, after no round has passed.
    assert selector.select(view_of(3, **columns), rng()).client.tolist() == [0, 1]
    selector.queue_j[:] = [9.0, 90.0, 80.0]
    assert selector.select(view_of(3, **columns), rng()).client.tolist() == [0]


@pytest.mark.parametrize("power_dbm", [23.0, 15.0, [10.0, 15.0, 23.0, 30.0] * 3])
def test_in_a_run_uploads_take_the_planned_time(power_dbm):
    cell = {
        "kind": "cell",
        "uplink": {"bandwidth_hz": 1e6, "transmit_power_dbm": power_dbm},
        "path_loss": {"kind": "log-distance"},
        "fading": {"kind": "rayleigh", "coherence_s": 1e6},
        "rate": {"kind": "shannon", "snr_gap_db": 0.0, "ceiling": "none"},
        "access": {"kind": "none"},
    }
    selector = {"kind": "ocean", "cohort": 4, "upload_s": 2.0, "bandwidth_hz": 1e6, "least_hz": 1e4}
    crowd = {"clients": 12, "placement": {"kind": "disc", "radius_m": 500.0}}
    tables = {"crowd": crowd, "network": cell, "selector": selector, "learning.model_bits": 1e5, "rounds.count": 4}
    history = simulate(TIMING.replace(tables))
    # Propagation takes up to 2 us.
    np.testing.assert_allclose(history.column("participations", "uplink_s"), 2.0, atol=1e-5)
