"""How a signal weakens on its way: path loss over distance, and shadowing by what stands between.

Streams: ``shadowing`` by client; both directions of a link are shadowed alike.
"""

import numpy as np
from numpy.typing import ArrayLike
from pydantic import NonNegativeFloat, PositiveFloat

from fedsim.network.base import FloatArray
from fedsim.network.laws import normal_quantile
from fedsim.parts import Catalogue, Part
from fedsim.streams import Streams

PATH_LOSSES = Catalogue(
    "path loss",
    "fedsim.path_losses",
    ("loss_db",),
    {"log-distance": "fedsim.network.propagation:LogDistance"},
)


class LogDistance(Part):
    """Path loss that grows by ``10 * exponent`` dB per decade of distance.

    ``loss = reference_loss_db + 10 * exponent * log10(distance / reference_distance_m)``, and never below
    0 dB: no passive path amplifies (with the defaults that matters below 0.4 m). The defaults are the urban macro
    cell at 2 GHz with antennas 15 m above the roofs, 128.1 + 37.6 log10(R / km): 3GPP TR 36.942, section 4.5.2.

    >>> round(float(LogDistance().loss_db(100.0)), 1)
    90.5
    """

    exponent: PositiveFloat = 3.76
    reference_loss_db: NonNegativeFloat = 128.1
    reference_distance_m: PositiveFloat = 1000.0

    def loss_db(self, distance_m: ArrayLike) -> FloatArray:
        """Return the path loss in dB at distances of at least 0 m."""
        ratio = np.asarray(distance_m, dtype=np.float64) / self.reference_distance_m
        with np.errstate(divide="ignore"):
            loss = self.reference_loss_db + 10 * self.exponent * np.log10(ratio)
        return np.maximum(0.0, loss)


def shadowing_db(sigma_db: float, clients: int, streams: Streams) -> FloatArray:
    """Return each client's log-normal shadowing, normal in dB with mean 0, shape (clients,).

    Positive values weaken the signal. It is drawn once per client and independent between clients.
    """
    return sigma_db * normal_quantile(streams.uniform("shadowing", np.arange(clients)))
