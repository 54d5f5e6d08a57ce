"""Power of a client in its share of a band: the rules by which a phone sets it.

An SNR is stated for a client that has the whole band with all its power. In a share x of the band, noise and
interference are x times as large, and the power is what the rule says. So the SNR there is the SNR of the whole band
times the power's density over that of all power spread over the whole band, ``min(1 / x, densest)``, where `densest`
is a number of each client.
"""

from typing import Annotated, Final, Protocol

import numpy as np
from pydantic import Field

from fedsim.answers import Contract, Numbers, same_shape
from fedsim.arrays import FloatArray
from fedsim.per_client import Values
from fedsim.registry import Component, Registry
from fedsim.units import Decibels, db_to_linear

POWER_CONTROLS: Final = Registry(
    "power control",
    "fedsim.power_controls",
    ("densest",),
    {
        "full": "fedsim.network.radio.shares.power_control:FullPower",
        "fractional": "fedsim.network.radio.shares.power_control:FractionalPower",
        "spread": "fedsim.network.radio.shares.power_control:SpreadPower",
    },
)

RESOURCE_BLOCK_HZ: Final = 180e3
"""Bandwidth of the resource block of 12 subcarriers of 15 kHz in which TS 38.213 counts."""


class PowerControl(Protocol):
    """A rule for the power of clients in their shares of an uplink."""

    def densest(self, loss_db: FloatArray, power_dbm: Values, bandwidth_hz: Values) -> FloatArray:
        """Return the greatest density of each client's power, 1 for all of it over the whole band; of the same shape.

        `inf` where a client always has all its power in its share.

        Parameters
        ----------
        loss_db : path loss and shadowing of clients towards their site, less antenna gains, any shape
        power_dbm : power of a client without antenna gains, one for all or of the same shape
        bandwidth_hz : of the whole band, or each client's own, one for all or of the same shape
        """
        ...


POWER_CONTROL: Final = Contract(
    "power control", PowerControl, {"densest": Numbers(same_shape("loss_db"), least=0, infinite=True)}
)


class FullPower(Component):
    """All power of a client in its share, however small the share is."""

    def densest(self, loss_db: FloatArray, power_dbm: Values, bandwidth_hz: Values) -> FloatArray:
        return np.full_like(loss_db, np.inf)


class SpreadPower(Component):
    """The power of one client over the whole band, of which a share carries its part: all clients radiate as one."""

    def densest(self, loss_db: FloatArray, power_dbm: Values, bandwidth_hz: Values) -> FloatArray:
        return np.ones_like(loss_db)


class FractionalPower(Component):
    """Open-loop power control of 3GPP TS 38.213, clause 7.1.1: ``min(P, P0 + 10 log10(M) + alpha * PL)`` in dBm.

    P is the client's power, M the number of resource blocks of 180 kHz in its share, and PL its loss. A client near the
    site sends at the same power density in every share, with less than its power; one far away sends with all of it.
    With the defaults a client of 23 dBm has the power for 10 MHz up to a loss of 107 dB.

    Attributes
    ----------
    p0_dbm : power for one resource block at a loss of 0 dB
    alpha : part of the loss that the power makes up for; at 1 all clients arrive alike
    """

    p0_dbm: Annotated[Decibels, Field(ge=-202, le=24)] = -80.0
    alpha: Annotated[float, Field(ge=0, le=1)] = 0.8

    def densest(self, loss_db: FloatArray, power_dbm: Values, bandwidth_hz: Values) -> FloatArray:
        blocks_db = 10 * np.log10(np.asarray(bandwidth_hz) / RESOURCE_BLOCK_HZ)
        return np.asarray(db_to_linear(self.p0_dbm + blocks_db + self.alpha * loss_db - np.asarray(power_dbm)))
