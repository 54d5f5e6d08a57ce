"""Spectral efficiency in bit/s/Hz at a signal-to-noise ratio: Shannon's formula, or modulation and coding.

A law gives the efficiency at an instantaneous SNR, and its mean over fading.
"""

from functools import cached_property, lru_cache
from typing import Annotated, Any, Final, Literal, Protocol, cast, runtime_checkable

import numpy as np
from pydantic import BeforeValidator, Field, PositiveFloat

from fedsim.answers import Contract, Numbers, same_shape, unchecked
from fedsim.arrays import FloatArray, constant
from fedsim.code_digest import is_builtin
from fedsim.network.radio.capacity import mean_below_ceiling, spectral_efficiency
from fedsim.network.radio.contracts import Fading
from fedsim.registry import Component, Registry, refusal
from fedsim.units import Decibels, db_to_linear, linear_to_db

RATES = Registry(
    "rate",
    "fedsim.rates",
    ("efficiency", "mean_efficiency"),
    {
        "shannon": "fedsim.network.radio.spectral_efficiency:Shannon",
        "cqi": "fedsim.network.radio.mcs:ModulationAndCoding",
        "sionna-phy": "fedsim.network.radio.sionna.link:SionnaLink",
    },
)

_NODES: Final = 512
_STEP_DB: Final = 0.1
_LOWEST_DB: Final = -50.0
_HIGHEST_DB: Final = 100.0
_BLOCK: Final = 256


class RateLaw(Protocol):
    """The spectral efficiency of a link: bits per second and hertz.

    Examples
    --------
    >>> from fedsim import Component
    >>> from fedsim.network.radio.spectral_efficiency import mean_over_fading
    >>> class Pulses(Component):
    ...     def efficiency(self, snr):
    ...         return np.where(snr >= 10.0, 1.0, 0.0)
    ...     def mean_efficiency(self, snr, fading):
    ...         return mean_over_fading(self, snr, fading)
    >>> from fedsim.network import Rayleigh
    >>> Pulses().mean_efficiency(np.array([10.0]), Rayleigh()).round(2).tolist()  # the gain exceeds 1 with exp(-1)
    [0.37]
    """

    def efficiency(self, snr: FloatArray) -> FloatArray:
        """Return the efficiency in bit/s/Hz at linear SNRs >= 0, of the shape of snr.

        Parameters
        ----------
        snr : linear, >= 0, any shape
        """
        ...

    def mean_efficiency(self, snr: FloatArray, fading: Fading) -> FloatArray:
        """Return the mean of the efficiency over fading in bit/s/Hz, of the shape of snr.

        Parameters
        ----------
        snr : mean linear SNRs >= 0, any shape
        fading : law of the gain
        """
        ...


@runtime_checkable
class WholeBandRate(RateLaw, Protocol):
    """A rate law whose sender has one scheme for a whole band; that of other laws has one for each part of it."""

    def efficiency_over_band(self, snr: FloatArray) -> FloatArray: ...


RATE_LAW: Final = Contract(
    "rate law",
    RateLaw,
    {
        "efficiency": Numbers(same_shape("snr"), least=0),
        "mean_efficiency": Numbers(same_shape("snr"), least=0),
    },
)


def _positive_or_none(value: Any) -> Any:
    """Refuse what is neither a number above 0 nor ``"none"`` under the field's own path."""
    number = isinstance(value, int | float) and not isinstance(value, bool) and value > 0
    if value != "none" and not number:
        raise refusal("ceiling", "input should be a number greater than 0, or 'none'")
    return value


@lru_cache
def _gap(snr_gap_db: float) -> FloatArray:
    """Return a gap in dB as a ratio; it is asked for with each transfer."""
    return constant(float(db_to_linear(snr_gap_db)))


class Shannon(Component):
    """``log2(1 + snr / gap)``, up to a ceiling.

    Attributes
    ----------
    snr_gap_db : float
        Loss of SNR of modulation and coding against Shannon's limit; 3 dB is typical of coded transmission with some
        margin.
    ceiling : float or ``"none"``
        Greatest efficiency, that of the highest modulation, in bit/s/Hz. The default is that of 256-QAM at the highest
        code rate of NR (TS 38.214, table 5.2.2.1-3). ``"none"`` for a formula without bound.
    """

    snr_gap_db: Annotated[Decibels, Field(ge=0, le=50)] = 3.0
    ceiling: Annotated[PositiveFloat | Literal["none"], BeforeValidator(_positive_or_none)] = 7.4

    def efficiency(self, snr: FloatArray) -> FloatArray:
        free = spectral_efficiency(snr / _gap(self.snr_gap_db))
        return free if self.ceiling == "none" else np.minimum(free, self._highest)

    @cached_property
    def _highest(self) -> FloatArray:
        return constant(float(self.ceiling))

    def mean_efficiency(self, snr: FloatArray, fading: Fading) -> FloatArray:
        usable = snr / _gap(self.snr_gap_db)
        if self.ceiling == "none":
            return fading.mean_spectral_efficiency(usable)
        return mean_below_ceiling(usable, self.ceiling, fading)


def mean_over_fading(rate: RateLaw, snr: FloatArray, fading: Fading) -> FloatArray:
    """Return the mean over fading of any bounded law's efficiency, for mean linear SNRs of any shape.

    The midpoint rule over 512 quantiles u of the gain, denser towards 1 (``u = 1 - (1 - t)^3``), at SNRs 0.1 dB
    apart from -50 to 100 dB and linearly in between, so that a client's mean does not depend on other clients. Against
    direct quadrature it errs by less than 0.1 % of the law's highest efficiency; below -50 dB it is 0, above 100 dB
    that of 100 dB.
    """
    # What code of a user's depends on beside its options is not known: its means are computed anew.
    shared = all(is_builtin(type(unchecked(part))) for part in (rate, fading))
    grid_db, mean = (_shared_grid if shared else _grid)(cast(Any, rate), cast(Any, fading))
    with np.errstate(divide="ignore"):
        return np.asarray(np.interp(linear_to_db(snr), grid_db, mean, left=0.0))


def _grid(rate: RateLaw, fading: Fading) -> tuple[FloatArray, FloatArray]:
    t = (np.arange(_NODES) + 0.5) / _NODES
    gain = fading.gain_quantile(1.0 - (1.0 - t) ** 3)
    weight = 3.0 * (1.0 - t) ** 2 / _NODES
    grid_db = np.arange(_LOWEST_DB, _HIGHEST_DB + _STEP_DB / 2, _STEP_DB)
    grid = db_to_linear(grid_db)
    mean = np.concatenate(
        [
            (rate.efficiency(grid[low : low + _BLOCK, None] * gain) * weight).sum(axis=1)
            for low in range(0, grid.size, _BLOCK)
        ]
    )
    return grid_db, mean


# Runs with other seeds have the same grid.
_shared_grid = lru_cache(maxsize=32)(_grid)
