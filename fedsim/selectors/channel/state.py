"""The state of candidates' uplinks, as a base station knows it at a selection."""

from typing import Literal

import numpy as np

from fedsim.arrays import FloatArray
from fedsim.selectors.contracts import RoundView

State = Literal["now", "mean"]


def snr_hz_of(view: RoundView, state: State) -> FloatArray | None:
    """Return the SNR of each candidate's uplink times its band in Hz, shape (n,); None without radio."""
    if view.snr_hz is None or state == "mean" or view.fading_gain is None:
        return view.snr_hz
    # An infinite SNR in a deep fade is infinite.
    faded = np.multiply(view.snr_hz, view.fading_gain, out=view.snr_hz.copy(), where=np.isfinite(view.snr_hz))
    return np.asarray(faded)


def known_snr_hz(view: RoundView, state: State) -> FloatArray:
    """Return what `snr_hz_of` returns; without radio all uplinks are equal, 1."""
    snr_hz = snr_hz_of(view, state)
    return np.ones(view.client.size) if snr_hz is None else snr_hz
