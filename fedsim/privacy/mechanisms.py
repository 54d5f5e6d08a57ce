"""Mechanisms that make an update private before it leaves the client: clipping, then Laplace noise.

Two mechanisms with two different promises. `L1ClippedLaplace` keeps the promise of Theorem 1 of the PAUSE
paper for the update as a whole; `CoordinateClampLaplace` is that of the paper's published code, and keeps it
for each coordinate by itself only. The promises hold for real numbers; the low bits of floating-point Laplace
noise leak (Mironov, "On significance of the least significant bits for differential privacy", CCS 2012).

Every mechanism maps any vector to a legal release, so that a diverged client keeps the promise too:
NaN counts as 0, an infinity as the largest float32, and noise beyond float32 is cut at its ends.
"""

from abc import abstractmethod
from typing import Annotated, ClassVar, Final, Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from fedsim.answers import Contract, Flag, Number, Numbers, same_shape
from fedsim.arrays import FloatArray, Mask, Vector
from fedsim.registry import Component, Registry

_LARGEST: Final = float(np.finfo(np.float32).max)
_SMALLEST_EPSILON: Final = float(np.finfo(np.float64).tiny)
_LARGEST_SCALE: Final = float(np.finfo(np.float64).max / 1e3)


@runtime_checkable
class Mechanism(Protocol):
    """A map from an update to a private release.

    Examples
    --------
    >>> class Signs:
    ...     def release(self, update, epsilon, buffers, rng):
    ...         kept = rng.random(update.size) < 1 / (1 + np.exp(-epsilon))
    ...         return np.where(kept, np.sign(update), -np.sign(update)).astype(np.float32)
    >>> ones, buffers = np.ones(10000, dtype=np.float32), np.zeros(10000, dtype=bool)
    >>> sent = Signs().release(ones, np.log(4.0), buffers, np.random.default_rng(0))
    >>> round(float(np.mean(sent > 0)), 2)  # 4 / (1 + 4)
    0.8
    """

    def release(self, update: Vector, epsilon: float, buffers: Mask, rng: np.random.Generator) -> Vector:
        """Return the release that the client sends in place of its update, float32, shape (d,).

        Parameters
        ----------
        update : float32, shape (d,)
        epsilon : cost of this release, >= 0
        buffers : coordinates that a mechanism may exempt, boolean, shape (d,)
        rng : random generator of this release
        """


@runtime_checkable
class NoisesStatistics(Protocol):
    """A mechanism that says whether running statistics of a model are part of the updates that it is given.

    Any other mechanism is given the trained numbers alone, and statistics pass in clear.

    Attributes
    ----------
    noise_statistics : bool

    Examples
    --------
    >>> isinstance(L1ClippedLaplace(clip=3.0), NoisesStatistics), L1ClippedLaplace(clip=3.0).noise_statistics
    (True, False)
    """

    @property
    def noise_statistics(self) -> bool:
        """See above."""


@runtime_checkable
class StatedNoise(Protocol):
    """A mechanism that states how much noise it adds, so that a server may correct for it.

    Examples
    --------
    >>> buffers = np.array([False, False, False, True])
    >>> L1ClippedLaplace(clip=3.0).noise_energy(2.0, buffers)  # four coordinates of the variance 2 (2 * 3 / 2)^2
    72.0
    >>> L1ClippedLaplace(clip=3.0, exempt_buffers=True).noise_energy(2.0, buffers)
    54.0
    """

    def noise_energy(self, epsilon: float, buffers: Mask) -> float:
        """Return the expected squared Euclidean norm of the noise of a release, before it is compressed.

        Parameters
        ----------
        epsilon : cost of the release, >= 0
        buffers : coordinates that a mechanism may exempt, boolean, shape (d,)
        """


@runtime_checkable
class TellsClipping(Protocol):
    """A mechanism that tells a release without its noise, for the noise-to-signal ratio of a run's tables.

    Examples
    --------
    >>> update, buffers = np.array([6.0, -2.0], dtype=np.float32), np.zeros(2, dtype=bool)
    >>> L1ClippedLaplace(clip=4.0).clipped(update, buffers).tolist()  # times 4 / (6 + 2)
    [3.0, -1.0]
    """

    def clipped(self, update: Vector, buffers: Mask) -> Vector:
        """Return an update as it is before noise is added, float32, shape (d,).

        Parameters
        ----------
        update : float32, shape (d,)
        buffers : coordinates that a mechanism may exempt, boolean, shape (d,)
        """


@runtime_checkable
class CalibratedNoise(Protocol):
    """A mechanism that states its clipping, its sensitivity and its noise, for tables and for noise at a server.

    Attributes
    ----------
    clipping_norm : most that an update keeps, in the mechanism's norm
    sensitivity : most by which two clipped updates differ, twice the above
    delta : probability mass that the epsilon of a release does not bound; 0 for none

    Examples
    --------
    >>> laplace = L1ClippedLaplace(clip=3.0)
    >>> isinstance(laplace, CalibratedNoise), laplace.clipping_norm, laplace.sensitivity, laplace.scale(2.0)
    (True, 3.0, 6.0, 3.0)
    """

    @property
    def clipping_norm(self) -> float:
        """See above."""

    @property
    def sensitivity(self) -> float:
        """See above."""

    @property
    def delta(self) -> float:
        """See above."""

    def clipped(self, update: Vector, buffers: Mask) -> Vector:
        """Return an update as it is before noise is added; see `TellsClipping.clipped`."""

    def scale(self, epsilon: float) -> float:
        """Return the scale of the noise of a release: a standard deviation, or the mean size of Laplace noise.

        Parameters
        ----------
        epsilon : of the release, above 0
        """

    def noise(self, epsilon: float, buffers: Mask, rng: np.random.Generator) -> FloatArray:
        """Return the noise of a release, shape (d,), 0 at exempt coordinates.

        Parameters
        ----------
        epsilon : cost of the release, >= 0
        buffers : coordinates that a mechanism may exempt, boolean, shape (d,)
        rng : random generator of this release
        """


class _StatingMechanism(Mechanism, NoisesStatistics, StatedNoise, TellsClipping, CalibratedNoise, Protocol):
    """All that a mechanism may answer."""


MECHANISM: Final = Contract(
    "privacy mechanism",
    _StatingMechanism,
    {
        "release": Numbers(same_shape("update"), most=_LARGEST, least=-_LARGEST, dtype=np.float32),
        "noise_statistics": Flag(),
        "noise_energy": Number(least=0, infinite=True),
        "clipped": Numbers(same_shape("update"), most=_LARGEST, least=-_LARGEST, dtype=np.float32),
        "clipping_norm": Number(least=0),
        "sensitivity": Number(least=0),
        "delta": Number(least=0, most=1),
        "scale": Number(least=0, infinite=True),
        "noise": Numbers(same_shape("buffers")),
    },
)


class ClippedNoise(Component):
    """Clipping, then noise on each coordinate that is not exempt; what derives from it states both."""

    variance: ClassVar[float]
    """Of noise of scale 1."""

    exempt_buffers: bool = False
    noise_statistics: bool = False

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        if self.exempt_buffers and self.noise_statistics:
            raise ValueError(
                "noise_statistics = True is not allowed with exempt_buffers = True, by which statistics pass in clear; "
                "allowed: exempt_buffers = false"
            )
        return self

    @property
    def clipping_norm(self) -> float:
        return 0.5 * self.sensitivity

    @property
    @abstractmethod
    def sensitivity(self) -> float: ...

    @abstractmethod
    def scale(self, epsilon: float) -> float: ...

    @abstractmethod
    def _bounded(self, values: NDArray[np.float64], clear: Mask) -> NDArray[np.float64]: ...

    @abstractmethod
    def _drawn(self, scale: float, size: int, rng: np.random.Generator) -> NDArray[np.float64]: ...

    def release(self, update: Vector, epsilon: float, buffers: Mask, rng: np.random.Generator) -> Vector:
        return self._sent(update, buffers, self.noise(epsilon, buffers, rng))

    def clipped(self, update: Vector, buffers: Mask) -> Vector:
        return self._sent(update, buffers, np.zeros(buffers.size))

    def noise(self, epsilon: float, buffers: Mask, rng: np.random.Generator) -> FloatArray:
        """Return the noise of a release; a number is drawn for each coordinate, exempt or not."""
        return np.where(self._clear(buffers), 0.0, self._drawn(self.scale(epsilon), buffers.size, rng))

    def noise_energy(self, epsilon: float, buffers: Mask) -> float:
        with np.errstate(over="ignore"):
            squared = float(np.square(self.scale(epsilon)))
        return float(np.count_nonzero(~self._clear(buffers)) * self.variance * squared)

    def _clear(self, buffers: Mask) -> Mask:
        return buffers & self.exempt_buffers

    def _sent(self, update: Vector, buffers: Mask, noise: FloatArray) -> Vector:
        """Return a clipped update with noise, and the update itself at the coordinates in clear."""
        if update.ndim != 1 or update.shape != buffers.shape:
            raise ValueError(f"buffers: shape {buffers.shape} does not mark an update of shape {update.shape}")
        values = np.nan_to_num(update.astype(np.float64), posinf=_LARGEST, neginf=-_LARGEST)
        clear = self._clear(buffers)
        noisy = np.clip(self._bounded(values, clear) + noise, -_LARGEST, _LARGEST)
        return np.where(clear, update, noisy.astype(np.float32))


class _LaplaceNoise(ClippedNoise):
    variance: ClassVar[float] = 2.0

    @property
    def delta(self) -> float:
        return 0.0

    def scale(self, epsilon: float) -> float:
        return laplace_scale(self.sensitivity, epsilon)

    def _drawn(self, scale: float, size: int, rng: np.random.Generator) -> NDArray[np.float64]:
        return rng.laplace(0.0, scale, size)


class L1ClippedLaplace(_LaplaceNoise):
    """The Laplace mechanism for the whole update: epsilon-LDP as in Theorem 1 of the paper.

    The update is scaled down to an L1 norm of at most ``clip``. Two clipped updates differ by at most
    ``2 clip`` in L1 norm, the sensitivity Delta f, so noise ``Laplace(0, 2 clip / epsilon)`` on every
    coordinate makes the release of the whole vector epsilon-LDP, whatever its dimension (PAUSE, equation 5).

    Attributes
    ----------
    clip : largest L1 norm of an update that is sent
    exempt_buffers : whether parameters of batch normalisation pass in clear, unclipped and without noise
        They leak: the guarantee then holds for the other coordinates only.
    noise_statistics : whether running statistics are clipped and get noise as part of the update
        By default they are averaged in clear, since a variance with noise may fall below zero, and leak.
    """

    clip: Annotated[float, Field(gt=0)]

    def _bounded(self, values: NDArray[np.float64], clear: Mask) -> NDArray[np.float64]:
        norm = float(np.abs(values[~clear]).sum())
        return values * (self.clip / norm) if norm > self.clip else values

    @property
    def sensitivity(self) -> float:
        return 2.0 * self.clip


class CoordinateClampLaplace(_LaplaceNoise):
    """The clamp of the paper's published code: epsilon for each coordinate, not for the update.

    Each coordinate is clamped to ``[-delta_f / 2, delta_f / 2]`` and gets noise
    ``Laplace(0, delta_f / epsilon)``. That is epsilon-LDP for one coordinate looked at alone. For the vector of
    d coordinates it is only ``d epsilon``-LDP: its L1 sensitivity is ``d delta_f``, so Theorem 1 would ask for d
    times the noise. With the 25,818 parameters of the paper's smaller model, a "budget of 20" so spent is one
    of 516,360.

    Attributes
    ----------
    delta_f : width of the interval of a coordinate (0.003 to 0.012 in the paper's runs)
    exempt_buffers : whether parameters of batch normalisation pass in clear, unclamped and without noise
        They leak, with no guarantee at all. On by default because the published code sends batch normalisation in
        clear: its running statistics and also its weights and biases. The learner's mask decides what is exempt.
    noise_statistics : whether running statistics are clamped and get noise as part of the update
    """

    delta_f: Annotated[float, Field(gt=0)]
    exempt_buffers: bool = True

    def _bounded(self, values: NDArray[np.float64], clear: Mask) -> NDArray[np.float64]:
        return np.clip(values, -self.delta_f / 2, self.delta_f / 2)

    @property
    def sensitivity(self) -> float:
        return self.delta_f


def laplace_scale(sensitivity: float, epsilon: float) -> float:
    """Return the mean size of noise that makes a number of that sensitivity private, cut where floats end."""
    if not epsilon >= 0:
        raise ValueError(f"epsilon: {epsilon!r} is not allowed; it must be at least 0")
    return float(min(sensitivity / max(epsilon, _SMALLEST_EPSILON), _LARGEST_SCALE))


MECHANISMS: Final = Registry(
    "privacy mechanism",
    "fedsim.mechanisms",
    ("release",),
    {
        "laplace-l1": "fedsim.privacy.mechanisms:L1ClippedLaplace",
        "laplace-coordinate": "fedsim.privacy.mechanisms:CoordinateClampLaplace",
        "gaussian": "fedsim.privacy.gaussian:L2ClippedGaussian",
    },
)
