"""The links of some clients, each with a band and a power of its own."""

from dataclasses import replace

import numpy as np

from fedsim.arrays import FloatArray, IntArray
from fedsim.network.radio.channel import Channel
from fedsim.per_client import at
from fedsim.units import db_to_linear


class AllocatedChannel:
    """One direction of the links of some clients under an allocation; gains and laws are those of a channel.

    A client with the power p in a band of b Hz has the SNR of the channel times ``p / p0 * b0 / b``, where p0 and b0
    are its power and its band without an allocation: noise and interference grow with the band.

    Parameters
    ----------
    channel : of all clients
    client : ids, distinct, shape (n,)
    bandwidth_hz : of each, > 0, shape (n,); None for the channel's
    power_change_db : power of each over its power in the channel, shape (n,); None for the channel's
    """

    def __init__(
        self,
        channel: Channel,
        client: IntArray,
        bandwidth_hz: FloatArray | None = None,
        power_change_db: FloatArray | None = None,
    ) -> None:
        order = np.argsort(client)
        self._ids = client[order]
        own_hz = np.broadcast_to(at(channel.bandwidth_hz, self._ids), self._ids.shape)
        band_hz = own_hz if bandwidth_hz is None else bandwidth_hz[order]
        snr = channel.snr[self._ids] * (own_hz / band_hz)
        if power_change_db is not None:
            snr = snr * db_to_linear(power_change_db[order])
        self._channel = replace(channel, snr=snr, bandwidth_hz=band_hz, ids=self._ids)

    def transfer_s(self, client: IntArray, start_s: FloatArray, bits: float) -> FloatArray:
        """Return the duration of a transfer for some of the clients, shape (m,); see `Channel.transfer_s`.

        Parameters
        ----------
        client : ids, some of those of the allocation, shape (m,)
        start_s : instant at which each transfer starts, shape (m,)
        bits : size, >= 0
        """
        return self._channel.transfer_s(np.searchsorted(self._ids, client), start_s, bits)
