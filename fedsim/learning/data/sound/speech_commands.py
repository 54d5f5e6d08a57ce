"""Speech Commands: short words by speaker."""

from pathlib import Path
from typing import ClassVar, Final

import numpy as np

from fedsim.errors import DataError
from fedsim.inputs.files import read_text
from fedsim.learning.data.datasets import Dataset
from fedsim.learning.data.in_files import InFiles, parted
from fedsim.learning.data.sound.mel import log_mel, read_wav

_RATE: Final = 16_000


class SpeechCommands(InFiles):
    """Speech Commands v2: 35 words by 2,618 speakers, as log-mel features of 32 frames and 32 bands (Warden 2018).

    Recordings in the publishers' ``testing_list.txt`` are for testing, those in ``validation_list.txt`` are not used,
    and all others are for training; all that the lists name must exist. Each speaker is a user. See
    `fedsim.learning.data.sound.mel`; all of 105,829 files take some minutes once in a process.
    """

    source: ClassVar[str] = (
        "download.tensorflow.org/data/speech_commands_v0.02.tar.gz, unpacked into SpeechCommands/speech_commands_v0.02 "
        "as torchaudio does"
    )
    place: ClassVar[str] = "SpeechCommands/speech_commands_v0.02"
    paths: ClassVar[tuple[str, ...]] = (
        *("{where}/testing_list.txt", "{where}/validation_list.txt"),
        "{where}/[!_]*/*_nohash_*.wav",
    )

    def read(self, place: Path) -> Dataset:
        testing, validation, *recordings = self.files(place)
        held_out = set(read_text(validation, DataError).split())
        tested = set(read_text(testing, DataError).split())
        names = [f"{path.parent.name}/{path.name}" for path in recordings]
        if missing := sorted((held_out | tested).difference(names)):
            raise DataError(
                f"{testing.parent}: {len(missing)} of the {len(held_out | tested)} recordings that {testing.name} and "
                f"{validation.name} name do not exist, first {missing[0]}; allowed: the publishers' whole archive"
            )
        chosen = [path for path, name in zip(recordings, names, strict=True) if name not in held_out]
        train = np.array([name not in tested for name in names if name not in held_out], dtype=bool)
        words = [path.parent.name for path in chosen]
        images = np.stack([log_mel(read_wav(path, _RATE), _RATE) for path in chosen])[..., None]
        speakers = [path.name.partition("_")[0] for path in chosen]
        return parted(testing, images, words, train, speakers, pixel_max=255)
