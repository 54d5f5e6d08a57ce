"""What data sets of texts in words have in common: options of the vocabulary, and the division into two parts."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Final

import numpy as np
from pydantic import Field

from fedsim.arrays import BoolArray
from fedsim.errors import DataError
from fedsim.learning.data.datasets import Dataset
from fedsim.learning.data.in_files import InFiles, parted
from fedsim.learning.data.text.vectors import read_vectors
from fedsim.learning.data.text.words import PADDING, encoded, vocabulary_of, words_of

TRAIN_SHARE: Final = 0.8
"""Share of the texts for training, the first ones of the file, as in FedSampling's code."""


class InWords(InFiles):
    """Texts as tokens of words.

    Words are those of `fedsim.learning.data.text.words`. The vocabulary is that of the training texts.

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
        texts: Sequence[str],
        labels: Sequence[int],
        users: Sequence[str] | None,
        train: BoolArray,
        classes: int,
        place: Path,
    ) -> Dataset:
        """Return texts as a set, of which some are for training."""
        words = [words_of(text) for text in texts]
        vocabulary = vocabulary_of((text for text, use in zip(words, train, strict=True) if use), self.vocabulary)
        files = self.vector_files(place)
        return parted(
            encoded(words, vocabulary, self.length),
            np.array(labels, dtype=np.int64),
            train,
            users,
            classes=classes,
            vocabulary=len(vocabulary) + 2,
            vectors=read_vectors(files[0], vocabulary) if files else None,
            token_fill=PADDING,
        )
