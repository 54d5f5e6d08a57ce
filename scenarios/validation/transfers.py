"""Transfers over Rayleigh fading of 10 dB in the mean, which is another in each block of a second."""

import math
from collections.abc import Iterator

import numpy as np
from scipy import integrate
from simpy import Environment

from fedsim.network import Rayleigh
from fedsim.network.medium.drawn import DrawnSpectrum
from fedsim.network.medium.drawn_rules import EqualBand
from fedsim.network.medium.multicast import LeastRate
from fedsim.network.radio.channel import Channel
from fedsim.streams import Streams
from validation import Row, mean_of, spread_of
from validation.fading import capacity

SNR = 10.0


def channel_of(clients: int, seed: int) -> Channel:
    return Channel(np.full(clients, SNR), 1.0, Rayleigh(coherence_s=1.0), "fading", Streams(seed))


def alone(effort: float) -> Iterator[Row]:
    """Transfer, in blocks: durations of transfers as long as 10^4 blocks of mean rate, in blocks.

    They begin with a block, and end within one that is met in proportion to its rate: by Wald's identity the mean is
    N + cv^2 / 2 with the coefficient of variation cv of the rate, and the variance about N cv^2.
    """
    blocks, clients = 10_000, round(800 * effort)
    square = integrate.quad(lambda gain: math.log2(1 + SNR * gain) ** 2 * math.exp(-gain), 0, 60, limit=200)[0]
    variation = square / capacity(SNR) ** 2 - 1
    took = channel_of(clients, 6).transfer_s(np.arange(clients), np.zeros(clients), blocks * capacity(SNR))
    yield mean_of("transfer over 10^4 Rayleigh blocks, mean", took, blocks + variation / 2)
    yield spread_of("transfer over 10^4 Rayleigh blocks, deviation", took, math.sqrt(blocks * variation))


def shares(effort: float) -> Iterator[Row]:
    """Shares: an upload over drawn fading beside seven others that go on, and one message to n clients, in bit/s/Hz.

    An upload of 50 blocks in an eighth of the band takes 50 blocks on average, and its coefficient of variation is that
    of the rate in one block over the square root of 50.
    """
    env, channel = Environment(), channel_of(8, 19)
    medium, ends_s = DrawnSpectrum(env, channel, EqualBand(channel)), [0.0]
    for client in range(1, 8):
        medium.send(client, 1e12)
    for _ in range(round(1500 * effort)):
        env.run(until=medium.send(0, 50 * capacity(SNR) / 8).done)
        ends_s.append(env.now)
    took, rate = np.diff(ends_s), channel.rate_bps(0, np.arange(100_000))
    yield mean_of("upload of 50 blocks in an equal share of 8, mean in blocks", took, 50.0)
    deviation = float(rate.std() / rate.mean()) * math.sqrt(50)
    yield spread_of("upload of 50 blocks in an equal share of 8, deviation", took, deviation)
    for users in (2, 10):  # the least of n gains is exponential with mean 1/n
        pace = LeastRate(channel_of(users, 18), np.arange(users), 0.0)
        carried = np.diff([pace.bits(10.0 * at) for at in range(1 + round(400 * effort))]) / 10.0
        yield mean_of(f"multicast to {users} Rayleigh clients at 10 dB, rate", carried, capacity(SNR / users))
