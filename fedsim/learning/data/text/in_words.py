"""What data sets of texts in words have in common: options of the vocabulary, and the division into two parts."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Final

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from fedsim.arrays import BoolArray, IntArray
from fedsim.errors import DataError
from fedsim.inputs.lines import read_lines
from fedsim.learning.data.datasets import Dataset
from fedsim.learning.data.in_files import InFiles, check_parts, first_ones, parted

_WIDEST: Final = 4096
"""Most numbers of a vector."""


def found_vectors(place: Path) -> tuple[str, ...]:
    return tuple(sorted(path.name for way in ("*.txt", "*.txt.gz") for path in place.glob(f"glove{way}")))


def read_vectors(path: Path, vocabulary: Mapping[str, int]) -> NDArray[np.float32]:
    """Return the vector of each token, shape (tokens, m)."""
    found: NDArray[np.float32] | None = None
    seen: set[str] = set()
    for number, line in enumerate(read_lines(path, DataError), 1):
        # A few names in glove.840B.300d.txt hold spaces; their first part has a line before theirs.
        word, _, rest = line.partition(" ")
        if word not in vocabulary or word in seen:
            continue
        values = _numbers(rest, f"{path}: line {number}")
        if found is None:
            found = np.zeros((len(vocabulary) + 2, values.size), dtype=np.float32)
        if values.size != found.shape[1]:
            raise DataError(f"{path}: line {number} has {values.size} numbers; allowed: {found.shape[1]} as before")
        found[vocabulary[word]] = values
        seen.add(word)
    if found is None:
        raise DataError(f"{path}: has none of the {len(vocabulary)} words; allowed: lines of a word and its numbers")
    return found


def _numbers(text: str, where: str) -> NDArray[np.float32]:
    try:
        values = np.array(text.split(), dtype=np.float64)
    except ValueError as error:
        raise DataError(f"{where} holds no vector: {error}") from None
    if not 1 <= values.size <= _WIDEST or not (np.abs(values) < 1e30).all():
        raise DataError(f"{where} holds {values.size} numbers; allowed: 1 to {_WIDEST} finite ones")
    return values.astype(np.float32)


PADDING: Final = 0
"""Token that fills up short texts."""
UNKNOWN: Final = 1
"""Token of every word that is not in the vocabulary."""
_RESERVED: Final = 2

_WORD: Final = re.compile(r"\w+|[.,!?;|]")


def words_of(text: str) -> list[str]:
    """Return words in small letters and single marks, in their order.

    >>> words_of("It's 20:15, NOW!")
    ['it', 's', '20', '15', ',', 'now', '!']
    """
    return _WORD.findall(text.lower())


def vocabulary_of(texts: Iterable[Sequence[str]], most: int) -> dict[str, int]:
    """Return the token of each frequent word, from 2 on: falling in frequency, equal ones in the order of letters.

    >>> vocabulary_of([["b", "a"], ["c", "b"]], 4)
    {'b': 2, 'a': 3}
    """
    counts = Counter(word for text in texts for word in text)
    ranked = sorted(counts, key=lambda word: (-counts[word], word))[: max(0, most - _RESERVED)]
    return {word: token for token, word in enumerate(ranked, _RESERVED)}


def encoded(texts: Sequence[Sequence[str]], vocabulary: Mapping[str, int], length: int) -> IntArray:
    """Return the first tokens of each text, shape (texts, length); short ones end in padding.

    >>> encoded([["b", "z", "a"], ["a"]], {"b": 2, "a": 3}, 2).tolist()
    [[2, 1], [3, 0]]
    """
    found = np.full((len(texts), length), PADDING, dtype=np.int64)
    for row, text in zip(found, texts, strict=True):
        tokens = [vocabulary.get(word, UNKNOWN) for word in text[:length]]
        row[: len(tokens)] = tokens
    return found


_TRAIN_SHARE: Final = 0.8


def first_texts(path: Path, texts: int) -> BoolArray:
    """Return which texts of a file are for training: the first four fifths, as in FedSampling's code."""
    if texts < 2:
        raise DataError(f"{path}: has {texts} texts; allowed: at least 2")
    return first_ones(texts, _TRAIN_SHARE)


class InWords(InFiles):
    """Texts as tokens of words.

    Words are those of `fedsim.learning.data.text.in_words`. The vocabulary is that of the training texts.

    Attributes
    ----------
    length : int >= 1
        Tokens of a text; longer ones are cut.
    vocabulary : int >= 3
        Most tokens, with those of padding and of words beyond the vocabulary.
    glove : str, optional
        File of GloVe's vectors, in the data folder or by its whole path. Models then get the vectors, which are not
        trained, as in FedSampling. Without one, models learn vectors of their own.
    """

    length: Annotated[int, Field(ge=1, le=10_000)] = 30
    vocabulary: Annotated[int, Field(ge=3, le=10_000_000)] = 30_000
    glove: str | None = None

    def files(self, place: Path) -> tuple[Path, ...]:
        found = super().files(place)
        return found and (*found, *self.vector_files(place))

    def vector_files(self, place: Path) -> tuple[Path, ...]:
        if self.glove is None:
            return ()
        path = place / self.glove
        if not path.is_file():
            raise DataError(
                f"{path} does not exist: glove = {self.glove!r} is a file of nlp.stanford.edu/projects/glove in the "
                "data folder, unpacked or packed by gzip"
            )
        return (path,)

    def coded(
        self,
        path: Path,
        texts: Sequence[str],
        labels: IntArray,
        users: Sequence[str] | None,
        train: BoolArray,
        classes: int,
        place: Path,
    ) -> Dataset:
        check_parts(path, train)
        words = [words_of(text) for text in texts]
        vocabulary = vocabulary_of((text for text, use in zip(words, train, strict=True) if use), self.vocabulary)
        files = self.vector_files(place)
        return parted(
            path,
            encoded(words, vocabulary, self.length),
            labels,
            train,
            users,
            classes=classes,
            vocabulary=len(vocabulary) + 2,
            vectors=read_vectors(files[0], vocabulary) if files else None,
            token_fill=PADDING,
        )
