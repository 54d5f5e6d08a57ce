"""Amazon's product reviews: the stars that a review gives, by reviewer."""

import json
from pathlib import Path
from typing import Any, ClassVar, Final

from fedsim.errors import DataError
from fedsim.inputs.files import shortened
from fedsim.inputs.lines import read_lines
from fedsim.learning.data.datasets import Dataset, data_folder
from fedsim.learning.data.in_files import first_ones
from fedsim.learning.data.own_files import FileName
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

    kind: ClassVar[str] = "amazon-reviews"
    source: ClassVar[str] = (
        "nijianmo.github.io/amazon or amazon-reviews-2023.github.io, the file of one category, such as "
        "Toys_and_Games_5.json.gz; put it into amazon and set name = 'Toys_and_Games_5', its name without .json.gz"
    )

    name: FileName = "Toys_and_Games_5"

    def where(self) -> str:
        return f"amazon/{self.name}{_ENDINGS[0]}"

    def wanted(self) -> tuple[tuple[str, ...], ...]:
        return (tuple(f"amazon/{self.name}{ending}" for ending in _ENDINGS),)

    def found(self, data_dir: Path | None = None) -> tuple[str, ...]:
        names = sorted(path.name for path in (data_folder(data_dir) / "amazon").glob("*.json*"))
        return tuple(
            f"name = '{name.removesuffix(ending)}': amazon/{name}"
            for name in names
            if (ending := next((one for one in _ENDINGS if name.endswith(one)), ""))
        )

    def read(self, place: Path) -> Dataset:
        path = self.files(place)[0]
        texts, labels, reviewers = [], [], []
        for number, line in enumerate(read_lines(path, DataError), 1):
            if not line.strip():
                continue
            reviewer, text, stars = _review(line, f"{path}: line {number}")
            if text.strip():
                texts.append(text)
                labels.append(stars - 1)
                reviewers.append(reviewer)
        if len(texts) < 2:
            raise DataError(f"{path}: has {len(texts)} reviews with a text; allowed: at least 2")
        return self.coded(texts, labels, reviewers, first_ones(len(texts), TRAIN_SHARE), _STARS, place)


def _review(line: str, where: str) -> tuple[str, str, int]:
    """Return reviewer, text and stars of a line of JSON."""
    try:
        found: Any = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{where} is no JSON: {error}") from None
    for reviewer, text, stars in _NAMES:
        if isinstance(found, dict) and reviewer in found and stars in found:
            values = found[reviewer], found.get(text) or "", found[stars]
            if isinstance(values[0], str) and isinstance(values[1], str) and values[2] in range(1, _STARS + 1):
                return values[0], values[1], int(values[2])
    raise DataError(
        f"{where} is no review: {shortened(line)}; allowed: reviewerID, reviewText and overall, or user_id, text and "
        f"rating, of 1 to {_STARS} stars"
    )
