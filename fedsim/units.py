"""Units: what a setting may hold in each, conversions of decibels, thermal noise and their constants.

Inside fedsim time is float seconds, data are bits, rates are bit/s, powers dBm and lengths metres; the unit
stands in the name. The functions take floats or arrays and return float64 of the same shape.

The bounds are far beyond what devices and networks have. Within them sums and products of a run stay finite, a clock of
64 bits still tells microseconds apart, and no setting alone makes a run endless. A field may have narrower ones of its
own: ``Annotated[Seconds, Bound(1e-3, 60.0)]``.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Final, TypeVar, get_args

import numpy as np
from annotated_types import Ge, Gt
from numpy.typing import ArrayLike, NDArray


@dataclass(frozen=True)
class Bound:
    """Annotation of a field: it may hold 0, and numbers whose absolute value lies between two limits, in a unit."""

    least: float
    greatest: float
    unit: str = ""

    def admits(self, value: float) -> bool:
        """Return whether a number is allowed; a field refuses 0 and numbers below 0 itself."""
        return value == 0 or self.least <= abs(value) <= self.greatest

    def words(self) -> str:
        """Return in words what is allowed."""
        greatest = str(self.greatest) if isinstance(self.greatest, int) else f"{self.greatest:g}"
        return f"absolute values {f'from {self.least:g} to' if self.least else 'up to'} {greatest}"


def bound_of(annotation: Any, metadata: Iterable[object] = ()) -> Bound | None:
    """Return the bound that an annotation states, the outermost of several; None where it states none.

    >>> bound_of(tuple[Seconds, ...] | None)
    Bound(least=1e-09, greatest=10000000000.0, unit='s')
    """
    return next((stated[-1] for stated in _stated(annotation, metadata)), None)


def unit_of(annotation: Any, metadata: Iterable[object] = ()) -> str:
    """Return the unit that an annotation states; empty where it states none.

    >>> unit_of(Annotated[Positive[Metres], Bound(1e-2, 1e9)])
    'm'
    """
    return next((bound.unit for stated in _stated(annotation, metadata) for bound in stated if bound.unit), "")


def _stated(annotation: Any, metadata: Iterable[object] = ()) -> Iterator[list[Bound]]:
    """Yield the bounds that an annotation states, and then those of the annotations in it, inner ones first."""
    found = [item for item in (*getattr(annotation, "__metadata__", ()), *metadata) if isinstance(item, Bound)]
    if found:
        yield found
    for inner in get_args(annotation):
        yield from _stated(inner)


LONGEST_S: Final = 1e10
"""About 317 years; up to here a clock of 64 bits tells two microseconds apart."""

SECONDS: Final = Bound(1e-9, LONGEST_S, "s")
BITS: Final = Bound(1e-6, 1e15, "bit")
BITS_PER_SECOND: Final = Bound(1e-6, 1e15, "bit/s")
KILOBITS_PER_SECOND: Final = Bound(1e-9, 1e12, "kbit/s")
METRES: Final = Bound(1e-6, 1e9, "m")
COORDINATES: Final = Bound(0.0, 1e9, "m")
"""In metres; a place may be as near to 0 as it likes."""
METRES_PER_SECOND: Final = Bound(1e-6, 1e5, "m/s")
HERTZ: Final = Bound(1e-3, 1e15, "Hz")
DECIBELS: Final = Bound(0.0, 1e3, "dB")
JOULES: Final = Bound(1e-9, 1e15, "J")
JOULES_PER_BIT: Final = Bound(1e-18, 1e6, "J/bit")
JOULES_PER_FLOP: Final = Bound(1e-24, 1e3, "J/FLOP")
WATTS: Final = Bound(1e-12, 1e12, "W")
SAMPLES_PER_SECOND: Final = Bound(1e-9, 1e12, "samples/s")
FLOPS_PER_SECOND: Final = Bound(1e-3, 1e24, "FLOP/s")
EXPONENT: Final = Bound(0.0, 20.0)

Seconds = Annotated[float, SECONDS]
Bits = Annotated[float, BITS]
BitsPerSecond = Annotated[float, BITS_PER_SECOND]
KilobitsPerSecond = Annotated[float, KILOBITS_PER_SECOND]
Metres = Annotated[float, METRES]
Coordinate = Annotated[float, COORDINATES]
MetresPerSecond = Annotated[float, METRES_PER_SECOND]
Hertz = Annotated[float, HERTZ]
Decibels = Annotated[float, DECIBELS]
"""Also levels in dBm and dBi."""
Joules = Annotated[float, JOULES]
FlopsPerSample = Annotated[float, Bound(1e-3, 1e24)]
PerSecond = Annotated[float, Bound(1e-12, 1e6, "1/s")]
PerDecibel = Annotated[float, Bound(1e-3, 1e6)]
Hours = Annotated[float, Bound(0.0, 1e6, "h")]
Exponent = Annotated[float, EXPONENT]

_Number = TypeVar("_Number")
Positive = Annotated[_Number, Gt(0)]
NonNegative = Annotated[_Number, Ge(0)]

SPEED_OF_LIGHT_M_PER_S: Final = 299_792_458.0
BOLTZMANN_J_PER_K: Final = 1.380_649e-23
REFERENCE_TEMPERATURE_K: Final = 290.0
BITS_PER_FLOAT32: Final = 32


def share_of(value: object) -> object:
    """Return a share that is given as a number, or as a text in per cent; what is neither is returned as it is.

    >>> share_of(0.8), share_of("80%"), share_of("97.5 %")
    (0.8, 0.8, 0.975)
    """
    if isinstance(value, str) and value.rstrip().endswith("%"):
        try:
            # The nearest number to the decimal fraction, which a division by 100 may miss.
            return float(f"{value.rstrip()[:-1].strip()}e-2")
        except ValueError:
            return value
    if isinstance(value, int | float) and not isinstance(value, bool) and value > 1:
        raise ValueError(f"it is a share of at most 1: {value:g} % is {value / 100:g} or '{value:g} %'")
    return value


def counted(number: int, what: str) -> str:
    """Return a number of things in words: 1 round, 2,000 rounds."""
    return f"{number:,} {what}{'s' * (number != 1)}"


def in_seconds(seconds: float, digits: int = 3) -> str:
    """Return seconds with some digits, or as a whole number of more: 0.839, 27,000."""
    whole = abs(seconds) >= 10 ** (digits - 1)
    return f"{seconds:,.0f}" if whole else f"{seconds:.{digits}g}"


def db_to_linear(value_db: ArrayLike) -> NDArray[np.float64]:
    """Return the power ratio of a level in dB, of the same shape.

    >>> float(db_to_linear(30.0))
    1000.0
    """
    return np.asarray(np.power(10.0, np.asarray(value_db, dtype=np.float64) / 10.0))


def linear_to_db(ratio: ArrayLike) -> NDArray[np.float64]:
    """Return the level in dB of a positive power ratio, of the same shape.

    >>> float(linear_to_db(100.0))
    20.0
    """
    return np.asarray(10.0 * np.log10(np.asarray(ratio, dtype=np.float64)))


def thermal_noise_dbm(bandwidth_hz: ArrayLike, noise_figure_db: float = 0.0) -> NDArray[np.float64]:
    """Return the noise power k T B of a receiver at 290 K, raised by its noise figure, in dBm."""
    power_w = BOLTZMANN_J_PER_K * REFERENCE_TEMPERATURE_K * np.asarray(bandwidth_hz, dtype=np.float64)
    return linear_to_db(power_w * 1e3) + noise_figure_db
