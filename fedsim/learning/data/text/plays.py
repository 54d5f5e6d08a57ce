"""Tiny Shakespeare: the next character of what a role says."""

from pathlib import Path
from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field

from fedsim.errors import DataError
from fedsim.learning.data.datasets import Dataset
from fedsim.learning.data.in_files import OR, InFiles, owners, parted
from fedsim.learning.data.text.in_words import UNKNOWN
from fedsim.learning.data.text.rows import read_speeches


class TinyShakespeare(InFiles):
    """Tiny Shakespeare: speeches by role; the label is the character that comes next (char-rnn's file, LEAF's task).

    All speeches of a role, one below the other, are its text. A sample is ``length`` characters of it and the one that
    follows. The first ``train_share`` of each text is for training and the rest for testing, so that they have no
    character in common. Roles whose part for training is too short for one sample are left out. Token 0 is not used, 1
    is for characters that the training texts do not have, and the label of a character is its token.

    Attributes
    ----------
    length : int >= 1
        Characters of a sample; 80 in LEAF.
    stride : int >= 1
        Characters from the beginning of a sample to that of the next one; 1 in LEAF, with 8 bytes a character.
    train_share : float in (0, 1)
    targets : ``"last"`` or ``"each"``
        One label for a sample, as in LEAF, or what follows each of its characters, as in char-rnn: for `NextToken`.
    """

    source: ClassVar[str] = (
        "github.com/karpathy/char-rnn, data/tinyshakespeare/input.txt; put it into tinyshakespeare, plain or by gzip"
    )
    place: ClassVar[str] = "tinyshakespeare/input.txt"
    paths: ClassVar[tuple[str, ...]] = (f"{{where}}{OR}{{where}}.gz",)

    length: Annotated[int, Field(ge=1, le=10_000)] = 80
    stride: Annotated[int, Field(ge=1, le=1_000_000)] = 10
    train_share: Annotated[float, Field(gt=0, lt=1)] = 0.8
    targets: Literal["last", "each"] = "last"

    def read(self, place: Path) -> Dataset:
        path = self.files(place)[0]
        texts = [(text, int(self.train_share * len(text))) for text in read_speeches(path).values()]
        known = {*"".join(text[:cut] for text, cut in texts)}
        tokens = {character: token for token, character in enumerate(sorted(known), UNKNOWN + 1)}
        parts = []  # of each role: its samples for training, then those for testing
        for text, cut in texts:
            if cut > self.length:
                coded = np.array([tokens.get(character, UNKNOWN) for character in text], dtype=np.int64)
                windows = np.lib.stride_tricks.sliding_window_view(coded, self.length + 1)
                parts += [windows[: cut - self.length : self.stride], windows[cut :: self.stride]]
        if not any(map(len, parts[1::2])):
            raise DataError(f"{path}: no role says more than {self.length} characters; allowed: a shorter length")
        samples, each = np.concatenate(parts), self.targets == "each"
        labels, classes = (samples[:, 1:], None) if each else (samples[:, -1], len(tokens) + 2)
        of = owners(parts)
        return parted(path, samples[:, :-1], labels, of % 2 == 0, of // 2, classes=classes, vocabulary=len(tokens) + 2)
