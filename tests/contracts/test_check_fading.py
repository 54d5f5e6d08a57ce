"""`check_fading` refuses broken laws, each for its own fault, and passes fedsim's."""
# ruff: noqa: ARG005 (a law takes what the contract gives)

import numpy as np
import pytest

from fedsim import Component
from fedsim.network import FADINGS
from fedsim.testing import check_fading
from tests.support.checks import passes, refuses
from tests.support.lies import lying, spoilt

LOW, HIGH = 0.05 / 0.715, 1.0 / 0.715


class Blocked(Component):
    """A body blocks the link with a known probability, and takes 13 dB; the broken ones differ in one thing each."""

    coherence_s: float = 0.2

    def gain_quantile(self, u):
        return np.where(u < 0.3, LOW, HIGH)

    def mean_spectral_efficiency(self, snr):
        return 0.3 * np.log2(1 + snr * LOW) + 0.7 * np.log2(1 + snr * HIGH)


class Banded(Blocked):
    """The same, with gains over a band."""

    def gains_over_band(self, states, frequencies, bandwidth_hz, delay_spread_s):
        u = (np.arange(states * frequencies) + 0.5) / (states * frequencies)
        return self.gain_quantile(u).reshape(states, frequencies)


def gaining(change):
    """Return a law with a change of its gains."""
    return spoilt(Blocked, "gain_quantile", change)()


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
        (gaining(lambda gains: gains[::-1]), "Lie.gain_quantile returned a smaller gain for a larger probability"),
        (gaining(lambda gains: 0.715 * gains), "Lie.gain_quantile has gains of mean 0.715; it must be 1"),
        (gaining(lambda gains: gains * (1 + 1e-9 * gains.size)), "the answer for some is not that for all"),
        (gaining(lambda gains: gains * np.random.uniform(0.99, 1.01)), "drew from a global random generator"),  # noqa: NPY002
        (gaining(np.ravel), r"Lie.gain_quantile returned .* shape \(6,\)"),
        (gaining(lambda gains: gains - LOW - 1e-9), r"Lie.gain_quantile returned -1e-09"),
        (lying(Blocked, "gain_quantile", lambda self, u: u.fill(0))(), "failed with ValueError.*must not be changed"),
        (
            lying(Blocked, "mean_spectral_efficiency", lambda self, snr: np.log2(1 + snr))(),
            "Lie.mean_spectral_efficiency is .* bit/s/Hz at a mean SNR of 0.1,",
        ),
        (Blocked.model_construct(coherence_s=np.nan), "Blocked.coherence_s returned nan"),
        (spoilt(Banded, "gains_over_band", lambda gains: 2 * gains)(), "Lie.gains_over_band has gains of mean 2"),
        (spoilt(Banded, "gains_over_band", lambda gains: gains[:3])(), r"gains_over_band returned .* shape \(3, 60\)"),
        (Component(), "Component.gain_quantile and mean_spectral_efficiency: there is no such method"),
    ],
)
