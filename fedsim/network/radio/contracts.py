"""fedsim.network.radio.contracts."""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from numpy.typing import ArrayLike

from fedsim.arrays import BoolArray, FloatArray, IntArray
from fedsim.streams import Streams


class PathLoss(Protocol):
    """How much weaker a signal arrives, on average over places at the same distance."""

    def loss_db(self, distance_m: ArrayLike) -> FloatArray:
        """Return the path loss in dB at distances of at least 0 m."""
        ...


@dataclass(frozen=True)
class LargeScale:
    """What every client meets on its way to one site, fading apart; arrays of shape (K,).

    Attributes
    ----------
    loss_db : path loss, walls included
    sigma_db : standard deviation of the shadowing
    los : whether there is a line of sight
    """

    loss_db: FloatArray
    sigma_db: FloatArray
    los: BoolArray


@runtime_checkable
class RandomPathLoss(PathLoss, Protocol):
    """A path loss that differs between clients at the same distance, by luck of their own."""

    def draw(
        self, distance_m: FloatArray, site: int | IntArray, streams: Streams, client: IntArray | None = None
    ) -> LargeScale:
        """Return what clients meet at these distances from a site.

        Parameters
        ----------
        distance_m : shape (n,)
        site : number of the site; one for each distance, shape (n,), where clients are named
        client : ids, shape (n,), given where clients move (one may be there many times); else they are 0..n-1. A law
            that does not take them can be used where clients stand still.
        """
        ...


class Fading(Protocol):
    """How the received power of a link varies around its mean, constant within a block.

    Attributes
    ----------
    coherence_s : length of a block; `inf` if the gain never changes
    """

    @property
    def coherence_s(self) -> float:
        """Length of a fading block in seconds."""
        ...

    def gain_quantile(self, u: FloatArray) -> FloatArray:
        """Return the inverse of the distribution function of the power gain (mean 1) at u in (0, 1)."""
        ...

    def mean_spectral_efficiency(self, snr: FloatArray) -> FloatArray:
        """Return the mean of ``log2(1 + snr * gain)`` in bit/s/Hz for each mean linear SNR >= 0."""
        ...
