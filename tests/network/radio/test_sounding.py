"""The gain that sounding shows is the one that uploads meet."""

import numpy as np
import pytest

from fedsim.network.radio.channel import LAST_BLOCK, Channel
from fedsim.network.radio.fading import NoFading, Rayleigh
from fedsim.network.radio.sounding import gain_at
from fedsim.streams import Streams

EVERYONE = np.arange(4)


def channel(fading, **options):
    return Channel(np.array([0.5, 2.0, 8.0, 30.0]), 1e6, fading, "fading", Streams(3), **options)


@pytest.mark.parametrize("time_s", [0.0, 0.19, 7.35])
def test_an_upload_within_the_block_has_the_rate_of_that_gain(time_s):
    radio = channel(Rayleigh(coherence_s=0.1))
    gain = gain_at(radio, EVERYONE, time_s)
    # Shannon's rate over a band of 1 MHz; 1 bit ends long before the block does.
    rate_bps = 1e6 * np.log2(1 + radio.snr * gain)
    np.testing.assert_allclose(radio.transfer_s(EVERYONE, np.full(4, time_s), 1.0), 1 / rate_bps, rtol=1e-9)


def test_blocks_differ_and_their_mean_is_one():
    radio = channel(Rayleigh(coherence_s=0.1))
    gains = np.array([gain_at(radio, EVERYONE, 0.1 * block + 0.05) for block in range(2000)])
    # An exponential gain has the standard deviation 1: that of a mean of 8,000 is 0.011.
    assert gains.mean() == pytest.approx(1.0, abs=0.05)
    assert gain_at(radio, EVERYONE, 0.04).tolist() == gain_at(radio, EVERYONE, 0.0).tolist() != gains[1].tolist()


def test_without_fading_and_after_the_last_block_it_is_one():
    assert gain_at(channel(NoFading()), EVERYONE, 5.0).tolist() == [1.0] * 4
    assert gain_at(channel(Rayleigh(coherence_s=0.1)), EVERYONE, 0.1 * 2 * LAST_BLOCK).tolist() == [1.0] * 4


def test_of_a_band_faded_in_parts_it_is_the_rate_over_the_mean():
    radio = channel(Rayleigh(coherence_s=0.1), delay_spread_s=1e-6)
    some = np.array([3, 1])
    share = radio.rate_bps(some, 20) / radio.ergodic_rate_bps[some]
    np.testing.assert_allclose(gain_at(radio, some, 2.05), share, rtol=1e-12)
