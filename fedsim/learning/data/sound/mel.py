"""Recordings as log-mel features: the strength of each band of frequencies in each part of the time.

A recording of T samples a second is cut, or filled up with silence, to 1.056 T samples. From them come 32 frames of
0.064 T samples each, and each frame begins in the middle of the one before. A frame is multiplied by a Hann window that
is scaled to the sum 256. Its power spectrum is summed in 32 triangular bands from 60 Hz to T / 2, whose centres lie
evenly on the mel scale ``2595 log10(1 + f / 700)``. Decibels become small integers: ``dB = value / 2 - 90``.
"""

import functools
import io
import wave
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from fedsim.arrays import FloatArray
from fedsim.errors import DataError
from fedsim.inputs.files import read_bytes
from fedsim.learning.data.in_files import form_of

FRAMES: Final = 32
BANDS: Final = 32
_FRAME_S: Final = 0.064
_LOWEST_HZ: Final = 60.0
_WINDOW_SUM: Final = 256.0
_LEAST_POWER: Final = 1e-10
_MAX_BYTES: Final = 1 << 22


def read_wav(path: Path, rate: int) -> FloatArray:
    """Return a recording, numbers in [-1, 1)."""
    content = read_bytes(path, _MAX_BYTES, DataError)
    with form_of(path, "a WAV file"), wave.open(io.BytesIO(content)) as file:
        form, claimed = (file.getnchannels(), file.getsampwidth(), file.getframerate()), file.getnframes()
        # Never more is asked for than there is.
        sound = file.readframes(min(claimed, len(content)))
    if form != (1, 2, rate):
        raise DataError(
            f"{path}: has {form[0]} channels, {form[1]} bytes a sample and {form[2]} samples a second; allowed: 1, 2 "
            f"and {rate}"
        )
    if len(sound) != 2 * claimed:
        raise DataError(
            f"{path}: its header claims {claimed} samples, and it has {len(sound) // 2}; allowed: a whole file"
        )
    return np.frombuffer(sound, dtype="<i2").astype(np.float64) / 2**15


def log_mel(sound: FloatArray, rate: int) -> NDArray[np.uint8]:
    length = round(_FRAME_S * rate)
    hop = length // 2
    whole = np.zeros(hop * (FRAMES - 1) + length)
    kept = sound[: whole.size]
    whole[: kept.size] = kept
    frames = np.lib.stride_tricks.sliding_window_view(whole, length)[::hop]
    window = np.hanning(length)
    power = np.abs(np.fft.rfft(frames * (_WINDOW_SUM / window.sum() * window), axis=1)) ** 2
    decibels = 10 * np.log10(np.maximum(power @ bands(rate, length).T, _LEAST_POWER))
    return np.asarray(np.clip(np.rint(2 * (decibels + 90)), 0, 255), dtype=np.uint8)


@functools.lru_cache(maxsize=4)
def bands(rate: int, length: int) -> FloatArray:
    """Return the weight of each frequency in each band, shape (bands, length // 2 + 1)."""
    mels = np.linspace(_mel(_LOWEST_HZ), _mel(rate / 2), BANDS + 2)
    edges = 700 * (10 ** (mels / 2595) - 1)
    frequency = np.fft.rfftfreq(length, 1 / rate)
    low, centre, high = edges[:-2, None], edges[1:-1, None], edges[2:, None]
    rising, falling = (frequency - low) / (centre - low), (high - frequency) / (high - centre)
    return np.maximum(0.0, np.minimum(rising, falling))


def _mel(hertz: float) -> float:
    return float(2595 * np.log10(1 + hertz / 700))
