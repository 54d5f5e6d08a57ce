"""Amazon's product reviews: the stars that a review gives, by reviewer."""

import re
from pathlib import Path
from typing import ClassVar, Final

import numpy as np

from fedsim.learning.data.datasets import Dataset, data_folder
from fedsim.learning.data.in_files import OR, FileName
from fedsim.learning.data.text.in_words import InWords, first_texts
from fedsim.learning.data.text.rows import read_reviews

_ENDINGS: Final = ".json.gz", ".json", ".jsonl.gz", ".jsonl"


class AmazonReviews(InWords):
    """Amazon reviews: texts with one to five stars, which are the labels 0 to 4 (Ni, Li and McAuley, EMNLP 2019).

    Each reviewer is a user. The first four fifths of the reviews in the order of the file are for training, as in
    FedSampling. Reviews without a text are left out.

    Attributes
    ----------
    name : str
        File in the folder ``amazon`` of the data folder, without its ending: ``.json`` or ``.jsonl``, packed by gzip or
        not.
    """

    source: ClassVar[str] = (
        "nijianmo.github.io/amazon or amazon-reviews-2023.github.io, the file of one category, such as "
        "Toys_and_Games_5.json.gz; put it into amazon and set name = 'Toys_and_Games_5', its name without .json.gz"
    )

    place: ClassVar[str] = f"amazon/{{name}}{_ENDINGS[0]}"
    paths: ClassVar[tuple[str, ...]] = (OR.join(f"amazon/{{name}}{ending}" for ending in _ENDINGS),)

    name: FileName = "Toys_and_Games_5"

    def found(self, data_dir: Path | None = None) -> tuple[str, ...]:
        names = sorted(path.name for path in (data_folder(data_dir) / "amazon").glob("*.json*"))
        parts = [(name, found[1]) for name in names if (found := re.fullmatch(r"(.+)\.jsonl?(\.gz)?", name))]
        return tuple(f"name = '{part}': amazon/{name}" for name, part in parts)

    def read(self, place: Path) -> Dataset:
        path = self.files(place)[0]
        reviews = [*read_reviews(path)]
        train = first_texts(path, len(reviews))
        reviewers, texts, stars = zip(*reviews, strict=True)
        return self.coded(path, texts, np.array(stars) - 1, reviewers, train, 5, place)
