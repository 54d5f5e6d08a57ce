"""The split of least makespan against bisection, and against splits drawn at random."""

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy.optimize import brentq

from fedsim.network import NoFading, Rayleigh, Shannon
from fedsim.network.radio.channel import Channel
from fedsim.network.radio.makespan_split import MakespanSplit
from fedsim.streams import Streams

LEVELS_DB = np.array([-12.0, 0.0, 7.5, 18.0, 30.0])


def split_of(densest, fading=None):
    snr = 10 ** (LEVELS_DB / 10)
    channel = Channel(
        snr, 1e6, fading or NoFading(), "fading", Streams(0), Shannon(ceiling="none"), np.full(5, densest)
    )
    return MakespanSplit(channel), channel


@given(st.lists(st.floats(1e2, 1e8), min_size=5, max_size=5), st.sampled_from([1.0, 3.0, np.inf]))
def test_all_end_after_the_time_that_bisection_finds(bits, densest):
    """For a time T each part solves ``x log2(1 + snr min(1/x, densest) / gap) = bits / (B T)``; in all they are 1."""
    split, channel = split_of(densest)
    bits, snr, gap = np.array(bits), channel.snr, 10**0.3
    parts = split.shares(bits, snr, channel.densest)
    rate = 1e6 * parts * np.log2(1 + snr * np.minimum(1 / parts, densest) / gap)
    assert parts.sum() == pytest.approx(1.0)
    np.testing.assert_allclose(bits / rate, split.time_s(bits, snr, channel.densest), rtol=2e-4)

    def least_part(k, time_s):
        def missing(log_x):
            x = np.exp(log_x)
            return x * np.log2(1 + snr[k] * min(1 / x, densest) / gap) - bits[k] / (1e6 * time_s)

        return np.exp(brentq(missing, -80.0, 5.0)) if missing(-80.0) < 0 < missing(5.0) else 2.0

    time_s = split.time_s(bits, snr, channel.densest)
    assert (
        sum(least_part(k, time_s * 1.002) for k in range(5))
        < 1.0
        < sum(least_part(k, time_s * 0.998) for k in range(5))
    )


def test_no_other_split_ends_earlier():
    split, channel = split_of(np.inf, Rayleigh())
    bits = np.array([3e5, 1e6, 1e6, 5e6, 2e6])
    least_s = split.time_s(bits, channel.snr, channel.densest)
    for parts in np.random.default_rng(0).dirichlet(np.ones(5), 300):
        rate = 1e6 * parts * channel.rate.mean_efficiency(channel.snr / parts, channel.fading)
        assert (bits / rate).max() > least_s * (1 - 1e-3)


def test_clients_are_found_again_by_their_mean_efficiency():
    split, channel = split_of(2.0, Rayleigh())
    efficiency = (channel.ergodic_rate_bps / channel.bandwidth_hz)[[3, 0, 4]]
    found = [split.radio_of(one * (1 + 1e-15)) for one in efficiency.tolist()]
    np.testing.assert_allclose(found, [(snr, 2.0) for snr in channel.snr[[3, 0, 4]]])
