"""The gain of an uplink's fading at an instant, as sounding signals show it to a base station."""

import math

import numpy as np

from fedsim.arrays import FloatArray, IntArray
from fedsim.network.radio.channel import LAST_BLOCK, Channel


def gain_at(channel: Channel, client: IntArray, time_s: float) -> FloatArray:
    """Return the power gain of each client's fading block at an instant, shape (n,), of mean 1.

    It is the gain that a transfer of the channel meets in that block. Where the band is faded in parts, it is the rate
    of the block over the mean rate. After `LAST_BLOCK` blocks, where transfers have the mean rate, it is 1.
    """
    coherence_s = channel.fading.coherence_s
    block = 0 if math.isinf(coherence_s) else int(min(time_s / coherence_s, LAST_BLOCK))
    if block >= LAST_BLOCK:
        return np.ones(client.size)
    if channel.delay_spread_s:
        mean = channel.ergodic_rate_bps[client]
        return np.divide(channel.rate_bps(client, block), mean, out=np.ones(client.size), where=mean > 0)
    u = channel.streams.uniform(channel.stream, client if channel.ids is None else channel.ids[client], block)
    return channel.fading.gain_quantile(u)
