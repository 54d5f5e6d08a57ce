"""Power in a share by hand, and what it does to the time of uploads."""

import numpy as np
import pytest
import simpy
from hypothesis import given, strategies as st

from fedsim.network import Cell, NoFading, Rayleigh, Shannon
from fedsim.network.radio.shares.multiuser_diversity import ShareGain
from fedsim.network.radio.shares.power_control import FractionalPower, FullPower, SpreadPower
from tests.support.media import built, finish


def test_fractional_power_by_hand():
    """TS 38.213: at 100 dB, alpha 0.8 and P0 -80 dBm a block of 180 kHz has 0 dBm, and ten of them 10 dBm.

    A client of 23 dBm could send on 200 blocks (23 dB) so: its density is at most a twentieth of ten blocks' 23 dBm.
    """
    found = FractionalPower().densest(np.array([100.0, 120.0]), 23.0, 1.8e6)
    np.testing.assert_allclose(10 * np.log10(found), [10.0 - 23.0, 26.0 - 23.0])
    whole = FractionalPower(p0_dbm=-100.0, alpha=1.0).densest(np.array([110.0]), 23.0, 180e3)
    np.testing.assert_allclose(10 * np.log10(whole), [-13.0])
    loss_db = np.array([80.0, 150.0])
    assert FullPower().densest(loss_db, 23.0, 1e6).tolist() == [np.inf, np.inf]
    assert SpreadPower().densest(loss_db, 23.0, 1e6).tolist() == [1.0, 1.0]


@given(st.floats(60, 160), st.floats(1, 200), st.floats(-120, -1), st.floats(0.01, 1))
def test_the_density_in_a_share_is_that_of_the_power_of_the_standard(loss_db, shares, p0_dbm, alpha):
    """``min(23, P0 + 10 log10(M) + alpha PL)`` dBm in the n-th part of 18 MHz, against 23 dBm over all of it."""
    power_dbm = min(23.0, p0_dbm + 10 * np.log10(100 / shares) + alpha * loss_db)
    density_db = power_dbm - 23.0 + 10 * np.log10(shares)
    densest = FractionalPower(p0_dbm=p0_dbm, alpha=alpha).densest(np.array([loss_db]), 23.0, 18e6)[0]
    assert 10 * np.log10(min(shares, densest)) == pytest.approx(density_db, abs=1e-9)


@pytest.mark.parametrize("users", [1, 3, 8, 50])
@pytest.mark.parametrize("densest", [1.0, 4.0, np.inf])
def test_gains_of_power_are_ratios_of_efficiencies(users, densest):
    snr = np.array([0.1, 1.0, 10.0, 100.0])
    law, fading = Shannon(snr_gap_db=0.0, ceiling="none"), NoFading()
    gains = ShareGain(law, fading, snr, np.full(4, densest))
    found = np.interp(10 * np.log10(snr), gains.level_db, gains.efficiency(users) / gains.alone)
    np.testing.assert_allclose(found, np.log2(1 + snr * min(users, densest)) / np.log2(1 + snr), rtol=1e-6)


def uploads(clients, fading="none", **uplink):
    """Return the ends of a megabit of each client at 1,120 m, who share 10 MHz equally."""
    up = {"sharing": "equal", "bandwidth_hz": 10e6, **uplink}
    places = np.tile([[1120.0, 0.0]], (clients, 1))
    rate = Shannon(snr_gap_db=0.0, ceiling="none")
    links = built(Cell(uplink=up, shadowing_sigma_db=0.0, rate=rate, fading=fading, access="none"), places, 1)
    env = simpy.Environment()
    air = links.open(env)
    return np.array(finish(env, *(air.uplink(client, 1e6) for client in range(clients)))), links


@pytest.mark.parametrize("read", ["mean", "drawn"])
@pytest.mark.parametrize(("kind", "seconds"), [("full", 1.6), ("spread", 23.4)])
def test_fifty_phones_far_away_radiate_as_fifty_and_not_as_one(kind, seconds, read):
    """10 MHz and 50 clients at 1,120 m: each has 200 kHz for itself, and there 50 times the SNR of the whole band.

    Without fading ``50 * 1e6 / (10e6 * log2(1 + snr))`` is 23.4 s for the SNR of the whole band, and 1.6 s for 50
    times that.
    """
    ends, links = uploads(50, power_control=kind, fading_in_shares=read)
    snr = links.uplink.snr[0] * (50 if kind == "full" else 1)
    assert ends.max() == pytest.approx(50 * 1e6 / (10e6 * np.log2(1 + snr)), rel=5e-3)
    assert ends.max() == pytest.approx(seconds, rel=0.02)


def test_with_fading_the_mean_reading_counts_the_mean_efficiency_in_the_share():
    ends, links = uploads(50, "rayleigh", fading_in_shares="mean")
    efficiency = Shannon(snr_gap_db=0.0, ceiling="none").mean_efficiency(50 * links.uplink.snr[:1], Rayleigh())
    assert ends.max() == pytest.approx(50 * 1e6 / (10e6 * efficiency[0]), rel=5e-3)
    drawn, _ = uploads(50, "rayleigh")
    assert drawn.mean() == pytest.approx(ends.max(), rel=0.1)


def test_one_client_alone_has_its_full_power_anyway():
    one = {kind: uploads(1, power_control=kind)[0][0] for kind in ("full", "spread")}
    assert one["full"] == one["spread"]
    assert uploads(1, power_control={"kind": "fractional", "p0_dbm": -110.0})[0][0] > one["full"]


def test_fractional_power_holds_where_the_band_is_dedicated_too():
    places = np.array([[50.0, 0.0], [3000.0, 0.0]])
    snrs = {}
    for kind in ("full", "fractional", "spread"):
        cell = Cell(uplink={"power_control": kind}, shadowing_sigma_db=0.0)
        snrs[kind] = built(cell, places).uplink.snr
    assert snrs["full"].tolist() == snrs["spread"].tolist()
    assert snrs["fractional"][0] < 0.1 * snrs["full"][0]
    assert snrs["fractional"][1] == snrs["full"][1]
