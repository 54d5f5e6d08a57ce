"""Fading laws whose gains Sionna draws: the delay profiles TDL and CDL of 3GPP TR 38.901, clauses 7.7.1 and 7.7.2.

The gains are samples, drawn once with a seed of their own: of one frequency for flat fading, and over a band for a
cell with a delay spread. Quantiles and means are those of the samples, scaled to a mean gain of 1.
"""

from functools import lru_cache
from typing import Any, ClassVar, Final, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import model_validator

from fedsim.arrays import FloatArray
from fedsim.network.radio.fading import BlockFading, in_rows
from fedsim.network.radio.sionna.loading import own_draws, part_of_sionna, require_sionna

Profile = Literal["A", "B", "C", "D", "E"]
SAMPLES: Final = {"sionna-tdl": 2**16, "sionna-cdl": 2**13}
"""Gains at one frequency; the rays of CDL take a hundred times as long to draw."""
_CARRIER_HZ: Final = 3.5e9
"""Sionna asks for one; without movement within a block no gain depends on it."""
_ROWS: Final = 2**6


class SionnaFading(BlockFading):
    """A fading law with Sionna's gains.

    Attributes
    ----------
    profile : ``A``, ``B`` and ``C`` have no line of sight, ``D`` and ``E`` have one
    """

    kind: ClassVar[str]

    profile: Profile = "A"

    @model_validator(mode="after")
    def _sionna_is_there(self) -> Self:
        require_sionna(self.kind)
        return self

    def gain_quantile(self, u: FloatArray) -> FloatArray:
        gain = _flat(self.kind, self.profile)
        return np.asarray(np.interp(u, (np.arange(gain.size) + 0.5) / gain.size, gain))

    def mean_spectral_efficiency(self, snr: FloatArray) -> FloatArray:
        gain = _flat(self.kind, self.profile)
        return in_rows(snr, _ROWS, lambda part: np.log1p(part * gain).mean(axis=1) / np.log(2.0))

    def gains_over_band(self, states: int, frequencies: int, bandwidth_hz: float, delay_spread_s: float) -> FloatArray:
        amplitude, delay_s = _paths(self.kind, self.profile, states, delay_spread_s)
        place_hz = ((np.arange(frequencies) + 0.5) / frequencies - 0.5) * bandwidth_hz
        turned = np.exp(-2j * np.pi * delay_s[:, None] * place_hz)
        gain = np.abs(amplitude @ turned) ** 2
        return np.asarray(gain / gain.mean())


class SionnaTdl(SionnaFading):
    """Tapped delay lines: each tap fades by itself, as a sum of sinusoids, with a Rayleigh law.

    The first tap of ``D`` and ``E`` has a constant part too, by which a gain is Rician.
    """

    kind: ClassVar[str] = "sionna-tdl"


class SionnaCdl(SionnaFading):
    """Clustered delay lines between two antennas that radiate in all directions: rays with angles and random phases."""

    kind: ClassVar[str] = "sionna-cdl"


@lru_cache(maxsize=8)
def _flat(kind: str, profile: Profile) -> FloatArray:
    """Return drawn gains of mean 1 at one frequency, ascending."""
    amplitude, _ = _paths(kind, profile, SAMPLES[kind], 100e-9)
    gain = np.sort(np.abs(amplitude.sum(axis=1)) ** 2)
    gain /= gain.mean()
    gain.flags.writeable = False
    return gain


def _paths(
    kind: str, profile: Profile, states: int, delay_spread_s: float
) -> tuple[NDArray[np.complexfloating[Any, Any]], FloatArray]:
    """Return amplitudes of the paths of drawn channels, shape (states, paths), and their delays."""
    law = _tdl(profile, delay_spread_s) if kind == SionnaTdl.kind else _cdl(profile, delay_spread_s)
    with own_draws():
        amplitude, delay_s = law(states, 1, 1.0)
    return amplitude[:, 0, 0, 0, 0, :, 0].cpu().numpy(), delay_s[0, 0, 0].cpu().numpy().astype(np.float64)


def _tdl(profile: Profile, delay_spread_s: float) -> Any:
    law = part_of_sionna("phy.channel.tr38901", "TDL")
    return law(profile, delay_spread_s, _CARRIER_HZ, device="cpu")


def _cdl(profile: Profile, delay_spread_s: float) -> Any:
    law, antenna = (part_of_sionna("phy.channel.tr38901", name) for name in ("CDL", "Antenna"))
    isotropic = antenna(
        polarization="single",
        polarization_type="V",
        antenna_pattern="omni",
        carrier_frequency=_CARRIER_HZ,
        device="cpu",
    )
    return law(profile, delay_spread_s, _CARRIER_HZ, isotropic, isotropic, "uplink", device="cpu")
