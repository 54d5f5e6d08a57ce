"""Speech Commands: short words by speaker."""

import re
from pathlib import Path
from typing import ClassVar, Final

import numpy as np

from fedsim.errors import DataError
from fedsim.inputs.files import read_text
from fedsim.learning.data.datasets import Dataset
from fedsim.learning.data.in_files import InFiles
from fedsim.learning.data.sound.mel import log_mel, read_wav
from fedsim.learning.data.text.in_words import numbered

_RATE: Final = 16_000
_FOLDER: Final = "SpeechCommands/speech_commands_v0.02"
_LISTS: Final = "testing_list.txt", "validation_list.txt"
_RECORDING: Final = re.compile(r"([0-9a-f]+)_nohash_\d+\.wav")


class SpeechCommands(InFiles):
    """Speech Commands v2: 35 words by 2,618 speakers, as log-mel features of 32 frames and 32 bands (Warden 2018).

    Recordings in the publishers' ``testing_list.txt`` are for testing, those in ``validation_list.txt`` are not used,
    and all others are for training; all that the lists name must exist. Each speaker is a user. See
    `fedsim.learning.data.sound.mel`; all of 105,829 files take some minutes once in a process.
    """

    kind: ClassVar[str] = "speech-commands"
    source: ClassVar[str] = (
        "download.tensorflow.org/data/speech_commands_v0.02.tar.gz, unpacked into SpeechCommands/speech_commands_v0.02 "
        "as torchaudio does"
    )

    def where(self) -> str:
        return _FOLDER

    def wanted(self) -> tuple[tuple[str, ...], ...]:
        return (*((f"{_FOLDER}/{name}",) for name in _LISTS), (f"{_FOLDER}/[!_]*/*.wav",))

    def files(self, place: Path) -> tuple[Path, ...]:
        folder = place / _FOLDER
        lists = [folder / name for name in _LISTS]
        if not all(path.is_file() for path in lists):
            return ()
        words = sorted(path for path in folder.iterdir() if path.is_dir() and not path.name.startswith("_"))
        recordings = [path for word in words for path in sorted(word.glob("*.wav")) if _RECORDING.fullmatch(path.name)]
        return (*lists, *recordings) if recordings else ()

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
        chosen = [(path, name) for path, name in zip(recordings, names, strict=True) if name not in held_out]
        test = np.array([name in tested for _, name in chosen], dtype=bool)
        if not test.any() or test.all():
            raise DataError(f"{testing}: names none of the recordings, or all of them")
        words = sorted({path.parent.name for path, _ in chosen})
        number = {word: label for label, word in enumerate(words)}
        images = np.stack([log_mel(read_wav(path, _RATE), _RATE) for path, _ in chosen])[..., None]
        labels = np.array([number[path.parent.name] for path, _ in chosen], dtype=np.int64)
        speakers = [path.name.partition("_")[0] for (path, _), out in zip(chosen, test, strict=True) if not out]
        return Dataset(
            *(images[~test], labels[~test], images[test], labels[test]),
            classes=len(words),
            pixel_max=255,
            train_users=numbered(speakers),
        )
