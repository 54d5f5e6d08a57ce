"""Rate laws: the published tables, block errors and retransmissions against simulation and closed forms."""

import math

import numpy as np
import pytest
from hypothesis import given, strategies as st
from pydantic import ValidationError
from scipy import special

from fedsim.network import ModulationAndCoding, Nakagami, NoFading, Rayleigh, Shannon
from fedsim.network.radio.mcs import SCHEMES, scheme_efficiencies

# TS 38.214, tables 5.2.2.1-2 and 5.2.2.1-3, column "efficiency".
CQI_64 = [0.1523, 0.2344, 0.3770, 0.6016, 0.8770, 1.1758, 1.4766, 1.9141, 2.4063, 2.7305, 3.3223, 3.9023, 4.5234]
CQI_64 += [5.1152, 5.5547]
CQI_256 = [0.1523, 0.3770, 0.8770, 1.4766, 1.9141, 2.4063, 2.7305, 3.3223, 3.9023, 4.5234, 5.1152, 5.5547, 6.2266]
CQI_256 += [6.9141, 7.4063]
WIFI = [0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 4.5, 5.0, 6.0, 20 / 3]


def linear(level_db):
    return 10.0 ** (np.asarray(level_db) / 10)


@pytest.mark.parametrize(("table", "published"), [("64qam", CQI_64), ("256qam", CQI_256), ("wifi", WIFI)])
def test_efficiencies_are_those_of_the_published_tables(table, published):
    np.testing.assert_allclose(scheme_efficiencies(table), published, atol=5.1e-5)


def test_a_level_on_a_threshold_reaches_it_however_it_is_rounded():
    """Levels a last bit below and above a threshold, as libraries for other processors give them, have one rate.

    Thresholds of Wi-Fi lie on whole decibels, and tables of rates ask for these very levels.
    """
    law = ModulationAndCoding(table="wifi")
    snr = linear(law.thresholds_db())
    for _ in range(4):
        np.testing.assert_array_equal(law.scheme(snr), np.arange(10))
        np.testing.assert_allclose(law.efficiency(snr), law.efficiency(linear(law.thresholds_db() + 1e-9)), rtol=1e-8)
        snr = np.nextafter(snr, 0.0)


def test_wifi_thresholds_are_within_what_the_standard_demands_of_receivers():
    """IEEE 802.11ac, table 21-25, 20 MHz: least sensitivities in dBm, with 10 dB of noise figure and 5 dB of margin."""
    sensitivity_dbm = np.array([-82, -79, -77, -74, -70, -66, -65, -64, -59, -57])
    # k T B is -100.98 dBm in 20 MHz, so that the schemes are demanded at 4 to 29 dB of SNR.
    demanded_db = sensitivity_dbm + 100.98 - 10.0 - 5.0
    thresholds_db = ModulationAndCoding(table="wifi").thresholds_db()
    assert np.all(thresholds_db < demanded_db)
    assert np.all(thresholds_db > demanded_db - 6.5)
    limit_db = 10 * np.log10(2 ** np.array(WIFI) - 1)
    assert (demanded_db - limit_db).min() == pytest.approx(6.4, abs=0.05)
    assert (demanded_db - limit_db).max() == pytest.approx(9.0, abs=0.05)


@given(
    table=st.sampled_from(["64qam", "256qam", "wifi"]),
    schemes=st.integers(1, 10),
    gap_db=st.floats(0.5, 8),
    steepness_per_db=st.floats(0.05, 10),
    attempts=st.integers(1, 6),
    combining=st.booleans(),
    backoff_s=st.sampled_from([0.0, 1e-3, 5e-3]),
    overhead=st.sampled_from([0.0, 0.14, 0.4]),
    level_db=st.floats(-10, 60),
)
def test_goodput_is_that_of_blocks_sent_until_one_is_decoded(level_db, **options):
    """A tenth of the blocks fails at the threshold; the odds of 1 to 9 fall with the SNR of all attempts so far."""
    law = ModulationAndCoding(block_s=2e-3, **options)
    efficiencies = scheme_efficiencies(options["table"])[: options["schemes"]].tolist()
    thresholds_db = [10 * math.log10(2**efficiency - 1) + options["gap_db"] for efficiency in efficiencies]
    index = sum(level_db >= threshold_db - 1e-9 for threshold_db in thresholds_db) - 1
    expected, reached, airtime_s = 0.0, 1.0, 0.0
    for attempt in range(1, 1 + options["attempts"] if index >= 0 else 0):
        airtime_s += reached * (2e-3 + (options["backoff_s"] if attempt > 1 else 0.0))
        margin_db = level_db - thresholds_db[index] + (10 * math.log10(attempt) if options["combining"] else 0.0)
        reached *= 1 / (1 + 9 * math.exp(options["steepness_per_db"] * margin_db))
        expected = efficiencies[index] * 2e-3 * (1 - reached) / airtime_s * (1 - options["overhead"])
    assert law.efficiency(np.array([0.0, linear(level_db)])) == pytest.approx([0.0, expected], rel=1e-9)
    assert int(law.scheme(linear(level_db))) == index


def test_more_schemes_than_the_table_has_are_refused():
    with pytest.raises(ValidationError, match="schemes = 11 is not allowed; the table 'wifi' has 10"):
        ModulationAndCoding(table="wifi", schemes=11)


def test_shannon_with_gap_and_ceiling_by_hand():
    law = Shannon(snr_gap_db=3.0, ceiling=4.0)
    np.testing.assert_allclose(
        law.efficiency(np.array([0.0, 1.0, 1e6])), [0.0, math.log2(1 + 10**-0.3), 4.0], rtol=1e-12
    )


def test_the_default_ceiling_is_that_of_256_qam():
    # TS 38.214, table 5.2.2.1-3: 8 bits at a code rate of 948/1024 are 7.4063 bit/s/Hz.
    assert float(Shannon().efficiency(np.array(1e12))) == 7.4
    unbound = Shannon(ceiling="none")
    assert float(unbound.efficiency(np.array(1e12))) == pytest.approx(math.log2(1 + 10**11.7), rel=1e-12)
    np.testing.assert_array_equal(
        unbound.mean_efficiency(np.array([5.0]), Rayleigh()), Rayleigh().mean_spectral_efficiency([5.0 / 10**0.3])
    )


def bicm_limit(bits, snr_db):
    """Mutual information in bit/s/Hz of bit-interleaved square QAM with Gray labels, by Gauss-Hermite quadrature.

    Caire, Taricco and Biglieri, "Bit-interleaved coded modulation", IEEE Trans. Inf. Theory 44(3), 1998, for each of
    the two dimensions.
    """
    levels = 2 ** (bits // 2)
    place = 2.0 * np.arange(levels) - (levels - 1)
    place /= np.sqrt(2 * np.mean(place**2))
    label = np.arange(levels) ^ (np.arange(levels) >> 1)
    noise = 10 ** (-snr_db / 20) / math.sqrt(2)
    node, weight = np.polynomial.hermite_e.hermegauss(120)
    likely = -((place[:, None, None] + noise * node[:, None] - place) ** 2) / (2 * noise**2)
    lost = 0.0
    for bit in range(bits // 2):
        for value in (0, 1):
            alike = (label >> bit) & 1 == value
            every = special.logsumexp(likely[alike], axis=-1)
            same = special.logsumexp(likely[alike][:, :, alike], axis=-1)
            lost += float(((every - same) @ weight).sum()) / (levels * math.sqrt(2 * math.pi) * math.log(2))
    return bits - 2 * lost


@pytest.mark.parametrize("table", ["64qam", "256qam"])
def test_nr_codes_lie_some_decibels_beyond_the_limit_of_their_constellation(table):
    law = ModulationAndCoding(table=table, gap="nr-ldpc")
    gap_db = law.thresholds_db() - 10 * np.log10(np.exp2(law.efficiencies()) - 1)
    order = np.array([bits for bits, _ in SCHEMES[table]])
    np.testing.assert_allclose(gap_db, np.select([order == 2, order == 4], [1.0, 2.0], 3.0), atol=1e-12)
    assert np.all(np.diff(law.thresholds_db()) > 0), "a higher scheme needs more"
    for threshold_db, bits, efficiency in zip(law.thresholds_db(), order, law.efficiencies(), strict=True):
        # The limit allows for the scheme 0.6 dB below its threshold, and does not 2.1 dB below it.
        assert bicm_limit(int(bits), threshold_db - 0.6) > efficiency
        assert bicm_limit(int(bits), threshold_db - 2.1) < efficiency


@pytest.mark.parametrize("level_db", [-12.0, -3.0, 4.4, 12.0, 25.0])
def test_mean_of_schemes_adds_up_over_their_ranges(level_db):
    # Steep errors: in the middle of its range a scheme carries all, so that the mean is a sum over thresholds.
    law = ModulationAndCoding(steepness_per_db=1e4, combining=False, overhead=0.0)
    snr = float(linear(level_db))
    edges = (np.exp2(scheme_efficiencies("64qam")) - 1) * 10**0.3 / snr
    for fading, survival in ((Rayleigh(), np.exp(-edges)), (Nakagami(m=3.0), special.gammaincc(3.0, 3.0 * edges))):
        theory = float(np.sum(scheme_efficiencies("64qam") * -np.diff(np.append(survival, 0.0))))
        found = law.mean_efficiency(np.array([snr]), fading)[0]
        assert found == pytest.approx(theory, abs=0.001 * CQI_64[-1])


def test_means_do_not_depend_on_who_else_is_asked_about():
    law = ModulationAndCoding()
    snr = linear(np.linspace(-40, 60, 31))
    together = law.mean_efficiency(snr, Rayleigh())
    np.testing.assert_array_equal(
        [law.mean_efficiency(snr[k : k + 1], Rayleigh())[0] for k in (0, 9, 30)], together[[0, 9, 30]]
    )
    np.testing.assert_array_equal(law.mean_efficiency(np.array([0.0]), NoFading()), [0.0])
    assert np.all(np.diff(together) >= 0)
