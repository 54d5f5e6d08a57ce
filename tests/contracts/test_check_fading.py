"""`check_fading` refuses broken laws, each for its own fault, and passes fedsim's."""

import numpy as np
import pytest

from fedsim import Component
from fedsim.network import FADINGS
from fedsim.testing import check_fading
from tests.support.checks import passes, refuses


class Blocked(Component):
    """A body blocks the link with a known probability, and takes 13 dB; the fault is an option."""

    fault: str = "none"
    coherence_s: float = 0.2
    drawn: bool = False

    @property
    def gains(self):
        low, high = 0.05, 1.0
        mean = 1.0 if self.fault == "not of mean 1" else 0.3 * low + 0.7 * high
        return low / mean, high / mean

    def gain_quantile(self, u):
        low, high = self.gains
        gains = np.where(u < 0.3, low, high)
        match self.fault:
            case "falls":
                return gains[::-1] if u.ndim == 1 else gains
            case "batch":
                return gains * (1 + 1e-9 * u.size)
            case "draws":
                return gains * np.random.uniform(0.99, 1.01)  # noqa: NPY002
            case "flat":
                return gains.ravel()
            case "below 0":
                return gains - 0.1
            case "writes":
                u[:] = 0
        return gains

    def mean_spectral_efficiency(self, snr):
        low, high = self.gains
        if self.fault == "of the mean gain":
            return np.log2(1 + snr)
        return 0.3 * np.log2(1 + snr * low) + 0.7 * np.log2(1 + snr * high)


class Banded(Blocked):
    """The same, with gains over a band."""

    rows: int = 400

    def gains_over_band(self, states, frequencies, bandwidth_hz, delay_spread_s):
        u = (np.arange(self.rows * frequencies) + 0.5) / (self.rows * frequencies)
        gains = self.gain_quantile(u).reshape(self.rows, frequencies)
        return 2 * gains if self.fault == "band of mean 2" else gains


class Unending:
    """A block whose length is no number."""

    coherence_s = float("nan")
    gain_quantile = mean_spectral_efficiency = staticmethod(np.ones_like)


@pytest.mark.parametrize("kind", FADINGS.builtin)
def test_fedsims_own_pass(kind):
    options = {"rician": {"k_db": 6.0}, "nakagami": {"m": 0.5}}.get(kind, {})
    if kind.startswith("sionna-"):
        pytest.importorskip("sionna", reason="the extra 'sionna' is not installed")
    assert check_fading(FADINGS.make({"kind": kind, **options})) is None


test_sound_laws_pass = passes(check_fading, [Blocked(), Banded()])
test_broken_laws_are_refused_for_their_fault = refuses(
    check_fading,
    [
        (Blocked(fault="falls"), "Blocked.gain_quantile returned a smaller gain for a larger probability"),
        (Blocked(fault="not of mean 1"), "Blocked.gain_quantile has gains of mean 0.715; it must be 1"),
        (Blocked(fault="batch"), "Blocked.gain_quantile: the answer for some is not that for all"),
        (Blocked(fault="draws"), "Blocked.gain_quantile drew from a global random generator"),
        (Blocked(fault="flat"), r"Blocked.gain_quantile returned .* shape \(6,\)"),
        (Blocked(fault="below 0"), r"Blocked.gain_quantile returned -0\.0"),
        (Blocked(fault="writes"), "Blocked.gain_quantile failed with ValueError.*must not be changed"),
        (Blocked(fault="of the mean gain"), "Blocked.mean_spectral_efficiency is .* bit/s/Hz at a mean SNR of 0.1,"),
        (Unending(), "Unending.coherence_s returned nan"),
        (Banded(fault="band of mean 2"), "Banded.gains_over_band has gains of mean 2"),
        (Banded(rows=3), r"Banded.gains_over_band returned .* shape \(3, 60\)"),
        (Component(), "Component.gain_quantile and mean_spectral_efficiency: there is no such method"),
    ],
)
