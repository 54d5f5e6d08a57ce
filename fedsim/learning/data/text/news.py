"""MIND: titles of news by topic, and who clicked on them."""

from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar, Final, Literal

import numpy as np

from fedsim.arrays import IntArray
from fedsim.errors import DataError
from fedsim.inputs.lines import read_lines
from fedsim.learning.data.datasets import Dataset, data_folder
from fedsim.learning.data.in_files import FolderName, first_ones
from fedsim.learning.data.text.in_words import TRAIN_SHARE, InWords

_FILES: Final = "news.tsv", "behaviors.tsv"
_MOST_CLICKS: Final = 50_000_000


class MIND(InWords):
    """MIND: titles of Microsoft's news, labelled by their topics (Wu et al., ACL 2020).

    The first four fifths of the news in the order of the file are for training, as in FedSampling.

    Attributes
    ----------
    folder : str
        Folder in the data folder with ``news.tsv`` and ``behaviors.tsv``.
    samples : ``"news"`` or ``"clicks"``
        ``"news"``: each news item once, without users. ``"clicks"``: each item in a reader's history once, with
        the reader as its user; clicks on the last fifth of the news are for testing, so that no title is in both.
    """

    source: ClassVar[str] = (
        "msnews.github.io, MINDsmall_train.zip (or MINDlarge_train.zip and folder = 'MINDlarge_train'); unpack it into "
        "a folder of its name"
    )

    place: ClassVar[str] = "{folder}"
    paths: ClassVar[tuple[str, ...]] = tuple(f"{{where}}/{name}" for name in _FILES)

    folder: FolderName = "MINDsmall_train"
    samples: Literal["news", "clicks"] = "news"

    @property
    def provides(self) -> frozenset[str]:
        return super().provides if self.samples == "clicks" else frozenset()

    def wanted(self) -> tuple[str, ...]:
        return super().wanted()[: 2 if self.samples == "clicks" else 1]

    def found(self, data_dir: Path | None = None) -> tuple[str, ...]:
        return tuple(
            f"folder = '{path.parent.name}' with{'' if (path.parent / _FILES[1]).is_file() else 'out'} {_FILES[1]}"
            for path in sorted(data_folder(data_dir).glob(f"*/{_FILES[0]}"))
        )

    def read(self, place: Path) -> Dataset:
        path, behaviors = (place / self.folder / name for name in _FILES)
        news: dict[str, tuple[str, str]] = {}
        for _, (item, topic, _, title, *_) in _lines(path, 4, "name, topic, part of the topic, title, and more"):
            news.setdefault(item, (title, topic))
        if len(news) < 2:
            raise DataError(f"{path}: has {len(news)} news; allowed: at least 2")
        titles, topics = zip(*news.values(), strict=True)
        names, numbers = np.unique(topics, return_inverse=True)
        train = first_ones(len(news), TRAIN_SHARE)
        if self.samples == "news":
            return self.coded(path, titles, numbers, None, train, len(names), place)
        readers, at = _clicks(behaviors, {item: number for number, item in enumerate(news)})
        return self.coded(behaviors, [titles[one] for one in at], numbers[at], readers, train[at], len(names), place)


def _lines(path: Path, cells: int, form: str) -> Iterator[tuple[int, list[str]]]:
    """Yield number and cells of each line: at least some cells, of which the second is not empty."""
    for number, line in enumerate(read_lines(path, DataError), 1):
        found = line.split("\t")
        if len(found) < cells or not found[0] or not found[1]:
            raise DataError(f"{path}: line {number} has {len(found)} cells; allowed: {form}")
        yield number, found


def _clicks(path: Path, known: dict[str, int]) -> tuple[list[str], IntArray]:
    """Return reader and news item of each click, each pair once, in the order of the file."""
    pairs: dict[tuple[str, int], None] = {}
    for number, (_, reader, _, history, *_) in _lines(path, 5, "5, of which the second is the reader"):
        for item in history.split():
            if item not in known:
                raise DataError(f"{path}: line {number} names the news {item!r}, which {_FILES[0]} does not have")
            pairs[reader, known[item]] = None
        if len(pairs) > _MOST_CLICKS:
            raise DataError(f"{path}: has more than {_MOST_CLICKS} clicks")
    return [reader for reader, _ in pairs], np.array([item for _, item in pairs], dtype=np.int64)
