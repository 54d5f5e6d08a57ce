"""The contract check of fading laws."""

from typing import Final

import numpy as np

from fedsim.arrays import FloatArray
from fedsim.network import FADINGS, Fading
from fedsim.network.radio.contracts import FADING, SelectiveFading
from fedsim.testing.examination import Examination, at_least_two

_SNRS: Final = (0.0, 1e-3, 0.1, 1.0, 30.0, 1e5)
"""Mean linear SNRs that are asked about, -30 to 50 dB, and no signal."""


def check_fading(fading: Fading, *, probabilities: int = 20_000, rtol: float = 0.01) -> None:
    """Check that a fading law keeps the contract of `fedsim.network.Fading`; return None if it does.

    The law is asked for its gains in the middles of many equal parts of (0, 1). It must

    * state with ``coherence_s`` a length above 0, or `inf`,
    * return with ``gain_quantile`` finite gains of at least 0 as a float64 array of the shape of the probabilities, for
      a table of them and for none too, and never a smaller gain for a larger probability,
    * have gains of mean 1, since path loss and shadowing are the mean of a link,
    * return with ``mean_spectral_efficiency`` the mean of ``log2(1 + snr * gain)``, 0 without a signal,
    * answer each element for itself: the same again, alone and among others,
    * leave the arrays alone that it is given (they are read-only), and draw no random number,
    * if it has ``gains_over_band``, return gains of mean 1, one row for each state and one column for each frequency.

    Parameters
    ----------
    fading : a law of fading, as it stands in ``network.fading``
    probabilities : how many parts of (0, 1), at least 2
    rtol : by which means may differ from 1 and from the spectral efficiencies. Gains with a heavy tail need more
        probabilities, or more room.

    Raises
    ------
    ContractError
        Naming the law, the member and the fault.
    ValueError
        If ``probabilities`` is too small to check anything.

    Examples
    --------
    >>> from fedsim.network import Rayleigh
    >>> check_fading(Rayleigh())
    """
    at_least_two(probabilities=probabilities)
    _Law(fading, rtol).check((np.arange(probabilities) + 0.5) / probabilities)


class _Law(Examination):
    def __init__(self, fading: Fading, rtol: float) -> None:
        super().__init__(fading)
        missing = FADINGS.missing_methods(fading)
        self.law(not missing, f"{' and '.join(missing)}: there is no such method")
        self._fading, self._rtol = FADING.checked(fading), rtol

    def check(self, u: FloatArray) -> None:
        self.ask("coherence_s", lambda: self._fading.coherence_s)
        gains, snr = self._gains(u), np.array(_SNRS)
        self.law(np.all(np.diff(gains) >= 0), "gain_quantile returned a smaller gain for a larger probability")
        mean = float(gains.mean())
        self.law(abs(mean - 1) <= self._rtol, f"gain_quantile has gains of mean {mean:.6g}; it must be 1")
        means = self._efficiencies(snr)
        for each, found in zip(snr.tolist(), means.tolist(), strict=True):
            wanted = float(np.log2(1 + each * gains).mean())
            near = abs(found - wanted) <= self._rtol * wanted
            fault = f"mean_spectral_efficiency is {found:.6g} bit/s/Hz at a mean SNR of {each:g}, where the gains of"
            self.law(near, f"{fault} gain_quantile have a mean of {wanted:.6g}")
        self._check_elements(u, gains, means)
        if isinstance(self._fading, SelectiveFading):
            self._check_band(self._fading)

    def _check_elements(self, u: FloatArray, gains: FloatArray, means: FloatArray) -> None:
        """Ask again for some elements, in another order and shape, and for none."""
        some, snr = u[::-97], np.array(_SNRS)
        self.same(self._gains(some), gains[::-97], "gain_quantile: the answer for some is not that for all")
        self.same(self._efficiencies(snr[::-2]), means[::-2], "mean_spectral_efficiency: some are not as all")
        table = self._gains(u[:6].reshape(2, 3))
        self.same(table.ravel(), gains[:6], "gain_quantile: the answer in a table is another one")
        self._gains(u[:0])

    def _check_band(self, fading: SelectiveFading) -> None:
        gains = self.ask("gains_over_band", lambda: fading.gains_over_band(400, 60, 1e6, 1e-6))
        self.array("gains_over_band", gains, (400, 60))
        # The states are a sample: 400 exponential gains have a mean with a standard deviation of 0.05.
        self.law(abs(float(gains.mean()) - 1) <= 0.25, f"gains_over_band has gains of mean {float(gains.mean()):.6g}")

    def _gains(self, u: FloatArray) -> FloatArray:
        return self.array("gain_quantile", self.ask("gain_quantile", self._fading.gain_quantile, u), u.shape)

    def _efficiencies(self, snr: FloatArray) -> FloatArray:
        answer = self.ask("mean_spectral_efficiency", self._fading.mean_spectral_efficiency, snr)
        return self.array("mean_spectral_efficiency", answer, snr.shape)
