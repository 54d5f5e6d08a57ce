"""Amazon's product reviews: the stars that a review gives, by reviewer."""

import json
import re
from pathlib import Path
from typing import Any, ClassVar, Final

import numpy as np

from fedsim.errors import DataError
from fedsim.inputs.files import shortened
from fedsim.inputs.lines import read_lines
from fedsim.learning.data.datasets import Dataset, data_folder
from fedsim.learning.data.in_files import OR, FileName, first_ones
from fedsim.learning.data.text.in_words import TRAIN_SHARE, InWords

_ENDINGS: Final = ".json.gz", ".json", ".jsonl.gz", ".jsonl"
_STARS: Final = 5
_NAMES: Final = ("reviewerID", "reviewText", "overall"), ("user_id", "text", "rating")
"""Reviewer, text and stars: until 2018, and from 2023 on."""


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
        lines = ((number, line) for number, line in enumerate(read_lines(path, DataError), 1) if line.strip())
        reviews = [review for number, line in lines if (review := _review(line, f"{path}: line {number}"))[1].strip()]
        if len(reviews) < 2:
            raise DataError(f"{path}: has {len(reviews)} reviews with a text; allowed: at least 2")
        reviewers, texts, stars = zip(*reviews, strict=True)
        train = first_ones(len(texts), TRAIN_SHARE)
        return self.coded(path, texts, np.array(stars) - 1, reviewers, train, _STARS, place)


def _review(line: str, where: str) -> tuple[str, str, int]:
    try:
        found: Any = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{where} is no JSON: {error}") from None
    for names in _NAMES if isinstance(found, dict) else ():
        reviewer, text, stars = (found.get(name) for name in names)
        if isinstance(reviewer, str) and isinstance(text or "", str) and stars in range(1, _STARS + 1):
            return reviewer, text or "", int(stars)
    raise DataError(
        f"{where} is no review: {shortened(line)}; allowed: reviewerID, reviewText and overall, or user_id, text and "
        f"rating, of 1 to {_STARS} stars"
    )
