"""From texts to tokens: words, a vocabulary of the frequent ones, texts cut and filled up to one length."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import numpy as np

from fedsim.arrays import IntArray

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


def lengths(tokens: IntArray) -> IntArray:
    """Return how many tokens of each text are no padding, shape (n,).

    >>> lengths(np.array([[5, 3, 0], [0, 0, 0]])).tolist()
    [2, 0]
    """
    return np.asarray(np.count_nonzero(tokens != PADDING, axis=1), dtype=np.int64)
