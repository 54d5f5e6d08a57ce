"""The contracts of path loss and fading laws."""

from dataclasses import dataclass
from typing import Final, Protocol, runtime_checkable

from numpy.typing import ArrayLike

from fedsim.answers import AnswerError, Contract, Given, Mask, Number, Numbers, in_words, same_shape, shaped
from fedsim.arrays import BoolArray, FloatArray, IntArray
from fedsim.streams import Streams


class PathLoss(Protocol):
    """The loss of a signal over distance, on average over places at the same distance.

    Examples
    --------
    >>> import numpy as np
    >>> from fedsim import Component
    >>> from fedsim.testing import check_path_loss
    >>> class PerMetre(Component):
    ...     first_db: float
    ...     def loss_db(self, distance_m):
    ...         return self.first_db + 0.1 * np.asarray(distance_m)
    >>> PerMetre(first_db=40.0).loss_db([0.0, 100.0]).tolist()
    [40.0, 50.0]
    >>> check_path_loss(PerMetre(first_db=40.0))
    """

    def loss_db(self, distance_m: ArrayLike) -> FloatArray:
        """Return the path loss in dB at distances in metres, >= 0, of any shape.

        Parameters
        ----------
        distance_m : in metres, >= 0, any shape
        """
        ...


@dataclass(frozen=True)
class LargeScale:
    """The large-scale propagation between every client and one site, without fading; arrays of shape (K,)."""

    loss_db: FloatArray
    sigma_db: FloatArray
    los: BoolArray
    indoor: BoolArray | None = None


@dataclass(frozen=True)
class _LargeScaleOf:
    def __call__(self, answer: object, given: Given) -> LargeScale:
        if not isinstance(answer, LargeScale):
            raise AnswerError(in_words(answer), "a LargeScale")
        each = same_shape("distance_m")
        loss_db, sigma_db = Numbers(each)(answer.loss_db, given), Numbers(each, least=0)(answer.sigma_db, given)
        indoor = None if answer.indoor is None else Mask(each)(answer.indoor, given)
        return LargeScale(loss_db, sigma_db, Mask(each)(answer.los, given), indoor)


@runtime_checkable
class RandomPathLoss(PathLoss, Protocol):
    """A path loss that differs between clients at the same distance, by draws of their own.

    Examples
    --------
    >>> import numpy as np
    >>> from fedsim.network import LogDistance, UrbanMicro
    >>> from fedsim.streams import Streams
    >>> isinstance(LogDistance(), RandomPathLoss), isinstance(UrbanMicro(), RandomPathLoss)
    (False, True)
    >>> UrbanMicro().draw(np.array([15.0, 18.0]), 0, Streams(0)).los.tolist()  # up to 18 m there is always one
    [True, True]
    """

    def draw(
        self, distance_m: FloatArray, site: int | IntArray, streams: Streams, client: IntArray | None = None
    ) -> LargeScale:
        """Return the large-scale propagation of clients at some distances from a site.

        Parameters
        ----------
        distance_m : in metres, shape (n,)
        site : number of the site; one for each distance, shape (n,), where clients are named
        streams : random streams of the run
        client : ids, shape (n,), given where clients move (one may occur many times); else they are 0..n-1. A law
            that does not take them can be used where clients stand still.
        """
        ...


class Fading(Protocol):
    """The variation of a link's received power around its mean, constant within a block.

    Attributes
    ----------
    coherence_s : length of a block; `inf` if the gain never changes

    Examples
    --------
    >>> import numpy as np
    >>> from fedsim import Component
    >>> from fedsim.testing import check_fading
    >>> class OnOff(Component):
    ...     coherence_s: float = 0.1
    ...     def gain_quantile(self, u):
    ...         return np.where(u > 0.5, 2.0, 0.0)
    ...     def mean_spectral_efficiency(self, snr):
    ...         return 0.5 * np.log2(1 + 2 * snr)
    >>> check_fading(OnOff())
    """

    @property
    def coherence_s(self) -> float:
        """Length of a fading block in seconds."""
        ...

    def gain_quantile(self, u: FloatArray) -> FloatArray:
        """Return the inverse of the distribution function of the power gain (mean 1), of the shape of u.

        Parameters
        ----------
        u : probabilities in (0, 1), any shape
        """
        ...

    def mean_spectral_efficiency(self, snr: FloatArray) -> FloatArray:
        """Return the mean of ``log2(1 + snr * gain)`` in bit/s/Hz, of the shape of snr.

        Parameters
        ----------
        snr : mean linear SNRs >= 0, any shape
        """
        ...


@runtime_checkable
class SelectiveFading(Fading, Protocol):
    """A fading law that says itself how gains differ over the frequencies of a band.

    For other laws this follows from a delay spread; see `fedsim.network.radio.selectivity`.
    """

    def gains_over_band(self, states: int, frequencies: int, bandwidth_hz: float, delay_spread_s: float) -> FloatArray:
        """Return power gains of mean 1 in equally likely states, shape (states, frequencies).

        Parameters
        ----------
        states : number of states
        frequencies : number of evenly spaced frequencies in the band
        bandwidth_hz : width of the band
        delay_spread_s : root mean square delay spread of the cell
        """
        ...


PATH_LOSS: Final = Contract(
    "path loss", RandomPathLoss, {"loss_db": Numbers(same_shape("distance_m")), "draw": _LargeScaleOf()}
)
FADING: Final = Contract(
    "fading",
    SelectiveFading,
    {
        "coherence_s": Number(least=0, above=True, infinite=True),
        "gain_quantile": Numbers(same_shape("u"), least=0),
        "mean_spectral_efficiency": Numbers(same_shape("snr"), least=0),
        "gains_over_band": Numbers(shaped("states", "frequencies"), least=0),
    },
)
