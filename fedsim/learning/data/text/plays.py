"""Tiny Shakespeare: the next character of what a role says."""

import itertools
from pathlib import Path
from typing import Annotated, ClassVar, Final, Literal

import numpy as np
from pydantic import Field

from fedsim.arrays import IntArray
from fedsim.errors import DataError
from fedsim.inputs.lines import read_lines
from fedsim.learning.data.datasets import Dataset, data_folder
from fedsim.learning.data.in_files import OR, InFiles
from fedsim.learning.data.text.in_words import UNKNOWN

_MAX_BYTES: Final = 1 << 26


class TinyShakespeare(InFiles):
    """Tiny Shakespeare: speeches by role; the label is the character that comes next (char-rnn's file, LEAF's task).

    All speeches of a role, one below the other, are its text. A sample is ``length`` characters of it and the one that
    follows. The first ``train_share`` of each text is for training and the rest for testing, so that they have no
    character in common. Roles whose part for training is too short for one sample are left out. Token 0 is not used, 1
    is for characters that the training texts do not have, and the label of a character is its token.

    With ``targets = "each"`` the target of a sample is what follows each of its characters, for the task `NextToken`:
    the same windows, and ``length`` targets in the place of one.

    Attributes
    ----------
    length : int >= 1
        Characters of a sample; 80 in LEAF.
    stride : int >= 1
        Characters from the beginning of a sample to that of the next one; 1 in LEAF, with 8 bytes a character.
    train_share : float in (0, 1)
    targets : ``"last"`` or ``"each"``
        Whether a sample has one label, as in LEAF, or a target at each place, as in char-rnn.
    """

    source: ClassVar[str] = (
        "github.com/karpathy/char-rnn, data/tinyshakespeare/input.txt; put it into tinyshakespeare, as it is or packed "
        "by gzip"
    )
    place: ClassVar[str] = "tinyshakespeare/input.txt"
    paths: ClassVar[tuple[str, ...]] = (f"{{where}}{OR}{{where}}.gz",)

    length: Annotated[int, Field(ge=1, le=10_000)] = 80
    stride: Annotated[int, Field(ge=1, le=1_000_000)] = 10
    train_share: Annotated[float, Field(gt=0, lt=1)] = 0.8
    targets: Literal["last", "each"] = "last"

    def found(self, data_dir: Path | None = None) -> tuple[str, ...]:
        place = data_folder(data_dir)
        return tuple(str(path.relative_to(place)) for path in self.files(place))

    def read(self, place: Path) -> Dataset:
        (path,) = self.files(place)
        texts = [(text, int(self.train_share * len(text))) for text in _speeches(path).values()]
        known = sorted({*"".join(text[:cut] for text, cut in texts)})
        tokens = {character: token for token, character in enumerate(known, UNKNOWN + 1)}
        windows = []
        for text, cut in texts:
            coded = np.array([tokens.get(character, UNKNOWN) for character in text], dtype=np.int64)
            windows.append([self._windows(part) for part in np.split(coded, [cut])])
        chosen = [parts for parts in windows if len(parts[0])]
        if not chosen or not sum(len(test) for _, test in chosen):
            raise DataError(f"{path}: no role says more than {self.length} characters; allowed: a shorter length")
        train, test = (np.concatenate(parts) for parts in zip(*chosen, strict=True))
        each = self.targets == "each"
        of_each = slice(1, None) if each else -1
        return Dataset(
            *(train[:, :-1].copy(), train[:, of_each].copy(), test[:, :-1].copy(), test[:, of_each].copy()),
            classes=None if each else len(tokens) + 2,
            train_users=np.repeat(np.arange(len(chosen)), [len(train) for train, _ in chosen]),
            vocabulary=len(tokens) + 2,
        )

    def _windows(self, tokens: IntArray) -> IntArray:
        """Return samples of a text with their labels as last column, shape (n, length + 1)."""
        if tokens.size <= self.length:
            return np.empty((0, self.length + 1), dtype=np.int64)
        return np.lib.stride_tricks.sliding_window_view(tokens, self.length + 1)[:: self.stride]


def _speeches(path: Path) -> dict[str, str]:
    """Return all text of each role, in the order of their first speeches."""
    said: dict[str, list[str]] = {}
    lines = enumerate(read_lines(path, DataError, _MAX_BYTES), 1)
    for spoken, speech in itertools.groupby(lines, lambda line: bool(line[1].strip())):
        if spoken:
            number, name = next(speech)
            if not name.endswith(":"):
                raise DataError(f"{path}: line {number} begins a speech without a name; allowed: a name and ':'")
            said.setdefault(name[:-1], []).extend(line for _, line in speech)
    if not said:
        raise DataError(f"{path}: has no speeches; allowed: a name and ':', lines, an empty line")
    return {role: "\n".join(lines) for role, lines in said.items()}
