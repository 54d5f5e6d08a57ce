"""The Free Spoken Digit Dataset: ten digits by six speakers."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar, Final

import numpy as np

from fedsim.arrays import IntArray
from fedsim.errors import DataError
from fedsim.inputs.archives import read_npz
from fedsim.learning.data.datasets import Dataset, Images
from fedsim.learning.data.in_files import OR, InFiles, form_of, numbered, parted
from fedsim.learning.data.sound.mel import BANDS, FRAMES, log_mel, read_wav

_RATE: Final = 8000
_RECORDING: Final = re.compile(r"(\d)_([a-z]+)_(\d+)\.wav")
_FEATURES: Final = "fsdd_logmel.npz"


class SpokenDigits(InFiles):
    """Spoken digits by speaker, as log-mel features of 32 frames and 32 bands (Jackson and others, FSDD).

    Takes 0 to 4 of each speaker and digit are for testing, as the publishers say. See `fedsim.learning.data.sound.mel`.
    The features come from a folder ``recordings`` of WAV files, or were made of them before and stand in an NPZ file.
    """

    source: ClassVar[str] = (
        "github.com/Jakobovski/free-spoken-digit-dataset; put its folder recordings into fsdd, or a file "
        f"{_FEATURES} with logmel (n, {FRAMES}, {BANDS}) of uint8, label, speaker and take"
    )
    place: ClassVar[str] = "fsdd"
    paths: ClassVar[tuple[str, ...]] = (f"{{where}}/{_FEATURES}{OR}{{where}}/recordings/*.wav",)

    def read(self, place: Path) -> Dataset:
        files = self.files(place)
        images, labels, speakers, takes = _features(files[0]) if files[0].name == _FEATURES else _recorded(files)
        return parted(files[0], images, labels, takes > 4, speakers, classes=10, pixel_max=255)


def _features(path: Path) -> tuple[Images, IntArray, IntArray, IntArray]:
    arrays = read_npz(path)
    with form_of(path, f"logmel of uint8 (n, {FRAMES}, {BANDS}), and label, speaker and take, a whole number each"):
        images, *numbers = (arrays[name] for name in ("logmel", "label", "speaker", "take"))
        if images.dtype != np.uint8 or images.shape[1:] != (FRAMES, BANDS):
            raise ValueError(f"logmel is {images.dtype} of shape {images.shape}")
        if any(found.dtype.kind not in "iu" or found.shape != images.shape[:1] for found in numbers):
            raise ValueError(", ".join(f"{found.dtype} of shape {found.shape}" for found in numbers))
    label, speaker, take = (found.astype(np.int64) for found in numbers)
    return images[..., None].copy(), label, speaker, take


def _recorded(paths: Sequence[Path]) -> tuple[Images, IntArray, IntArray, IntArray]:
    chosen = [(path, found.groups()) for path in paths if (found := _RECORDING.fullmatch(path.name))]
    if not chosen:
        raise DataError(f"{paths[0]}: is no recording; allowed: names such as 7_jackson_32.wav")
    images = np.stack([log_mel(read_wav(path, _RATE), _RATE) for path, _ in chosen])[..., None]
    label, take = (np.array([int(name[place]) for _, name in chosen], dtype=np.int64) for place in (0, 2))
    return images, label, numbered([name[1] for _, name in chosen]), take
