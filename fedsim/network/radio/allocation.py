"""The links of some clients, each with a band and a power of its own."""

from dataclasses import replace

import numpy as np

from fedsim.arrays import FloatArray, IntArray
from fedsim.network.radio.channel import Channel
from fedsim.units import db_to_linear


class AllocatedChannel:
    """One direction of the links of some clients, each with a band and a power of its own.

    A client with the power p in a band of b Hz has the SNR of the channel times ``p / p0 * b0 / b``, where p0 and b0
    are its power and its band without an allocation: noise and interference grow with the band. Where a band is faded
    in parts, a share has the coherence bandwidths of the nearest power of two Hz.
    """

    def __init__(
        self,
        channel: Channel,
        client: IntArray,
        bandwidth_hz: FloatArray | None = None,
        power_change_db: FloatArray | None = None,
    ) -> None:
        order = np.argsort(client)
        ids = client[order]
        before_hz = np.full(ids.size, channel.bandwidth_hz) if channel.widths_hz is None else channel.widths_hz[ids]
        width_hz = before_hz if bandwidth_hz is None else bandwidth_hz[order]
        snr = channel.snr[ids] * (before_hz / width_hz)
        if power_change_db is not None:
            snr = snr * db_to_linear(power_change_db[order])
        octave = np.rint(np.log2(width_hz)).astype(np.int64) if channel.delay_spread_s else np.zeros(ids.size, np.int64)
        self._parts = []
        for one in np.unique(octave).tolist():
            part = np.flatnonzero(octave == one)
            rates = channel.octave_band(one) if channel.delay_spread_s else None
            self._parts.append(
                replace(channel, snr=snr[part], ids=ids[part], widths_hz=width_hz[part], band_rates=rates, densest=None)
            )

    def transfer_s(self, client: IntArray, start_s: FloatArray, bits: float) -> FloatArray:
        took_s = np.empty(client.size)
        for part in self._parts:
            if part.ids is not None:
                here = np.flatnonzero(np.isin(client, part.ids))
                took_s[here] = part.transfer_s(np.searchsorted(part.ids, client[here]), start_s[here], bits)
        return took_s
