"""How long a channel stays as it is: coherence time from speed and carrier.

R. H. Clarke, "A statistical theory of mobile-radio reception", Bell System Technical Journal 47(6), 1968; W. C. Jakes,
"Microwave Mobile Communications", 1974.
"""

from collections.abc import Mapping
from typing import Any, Self

from pydantic import PositiveFloat, model_validator

from fedsim.parts import Part
from fedsim.units import SPEED_OF_LIGHT_M_PER_S


def doppler_hz(speed_m_per_s: float, carrier_hz: float) -> float:
    """Return the greatest Doppler shift ``v f / c``.

    >>> round(doppler_hz(3 / 3.6, 2e9), 2)
    5.56
    """
    return speed_m_per_s * carrier_hz / SPEED_OF_LIGHT_M_PER_S


def coherence_time_s(speed_m_per_s: float, carrier_hz: float) -> float:
    """Return ``0.423 / f_D``, the rule of thumb for Clarke's model.

    It is the geometric mean of the time over which the correlation stays above one half, ``9 / (16 pi f_D)``, and of
    ``1 / f_D`` (T. S. Rappaport, "Wireless Communications", 2nd edition, equation 5.40.c).
    """
    return 0.423 / doppler_hz(speed_m_per_s, carrier_hz)


class BlockFading(Part):
    """A fading law whose gain changes from block to block.

    Attributes
    ----------
    coherence_s : float
        Length of a block. The default is that of Clarke's model for a pedestrian: 3 km/h at a carrier of 2 GHz give a
        Doppler frequency of 5.56 Hz.
    speed_m_per_s, carrier_hz : float or None
        Given together, they decide: `coherence_s` becomes ``0.423 / f_D`` whatever else it was set to.
    """

    coherence_s: PositiveFloat = 0.076
    speed_m_per_s: PositiveFloat | None = None
    carrier_hz: PositiveFloat | None = None

    @model_validator(mode="before")
    @classmethod
    def _speed_decides(cls, value: Any) -> Any:
        if isinstance(value, Mapping):
            speed, carrier = value.get("speed_m_per_s"), value.get("carrier_hz")
            if isinstance(speed, int | float) and isinstance(carrier, int | float) and min(speed, carrier) > 0:
                return {**value, "coherence_s": coherence_time_s(speed, carrier)}
        return value

    @model_validator(mode="after")
    def _both_or_neither(self) -> Self:
        if (self.speed_m_per_s is None) != (self.carrier_hz is None):
            raise ValueError("speed_m_per_s and carrier_hz belong together; set both or neither")
        return self
