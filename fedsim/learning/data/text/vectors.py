"""Vectors of words from a file of GloVe: one word and its numbers on each line."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from fedsim.errors import DataError
from fedsim.inputs.lines import read_lines

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
