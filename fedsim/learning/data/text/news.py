"""MIND: titles of news by topic, and who clicked on them."""

from pathlib import Path
from typing import ClassVar, Final, Literal

import numpy as np

from fedsim.capabilities import USERS
from fedsim.errors import DataError
from fedsim.inputs.lines import read_lines
from fedsim.learning.data.datasets import Dataset, data_folder
from fedsim.learning.data.in_files import first_ones
from fedsim.learning.data.own_files import FolderName
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

    kind: ClassVar[str] = "mind"
    source: ClassVar[str] = (
        "msnews.github.io, MINDsmall_train.zip (or MINDlarge_train.zip and folder = 'MINDlarge_train'); unpack it into "
        "a folder of its name"
    )

    folder: FolderName = "MINDsmall_train"
    samples: Literal["news", "clicks"] = "news"

    @property
    def provides(self) -> frozenset[str]:
        return frozenset({USERS} if self.samples == "clicks" else ())

    def where(self) -> str:
        return self.folder

    def wanted(self) -> tuple[tuple[str, ...], ...]:
        names = _FILES if self.samples == "clicks" else _FILES[:1]
        return tuple((f"{self.folder}/{name}",) for name in names)

    def found(self, data_dir: Path | None = None) -> tuple[str, ...]:
        return tuple(
            f"folder = '{path.parent.name}' with{'' if (path.parent / _FILES[1]).is_file() else 'out'} {_FILES[1]}"
            for path in sorted(data_folder(data_dir).glob(f"*/{_FILES[0]}"))
        )

    def read(self, place: Path) -> Dataset:
        news, *behaviors = (place / self.folder / name for name in _FILES)
        titles, topics = _news(news)
        names, numbers = np.unique(list(topics.values()), return_inverse=True)
        order = {item: place for place, item in enumerate(titles)}
        train = first_ones(len(titles), TRAIN_SHARE)
        if self.samples == "news":
            return self.coded(list(titles.values()), numbers.tolist(), None, train, len(names), place)
        readers, items = _clicks(behaviors[0], order)
        at = np.array([order[item] for item in items], dtype=np.int64)
        if not train[at].any() or train[at].all():
            raise DataError(
                f"{behaviors[0]}: has no clicks on the first four fifths of the news, or none on the others"
            )
        texts = [titles[item] for item in items]
        return self.coded(texts, numbers[at].tolist(), readers, train[at], len(names), place)


def _news(path: Path) -> tuple[dict[str, str], dict[str, str]]:
    """Return title and topic of each news item by its name, in the order of the file."""
    titles, topics = dict[str, str](), dict[str, str]()
    for number, line in enumerate(read_lines(path, DataError), 1):
        cells = line.split("\t")
        if len(cells) < 4 or not cells[0] or not cells[1]:
            raise DataError(
                f"{path}: line {number} has {len(cells)} cells; allowed: name, topic, part of the topic, title, and "
                "more"
            )
        if cells[0] not in titles:
            titles[cells[0]], topics[cells[0]] = cells[3], cells[1]
    if len(titles) < 2:
        raise DataError(f"{path}: has {len(titles)} news; allowed: at least 2")
    return titles, topics


def _clicks(path: Path, known: dict[str, int]) -> tuple[list[str], list[str]]:
    """Return reader and news item of each click, each pair once, in the order of the file."""
    pairs: dict[tuple[str, str], None] = {}
    for number, line in enumerate(read_lines(path, DataError), 1):
        cells = line.split("\t")
        if len(cells) != 5 or not cells[1]:
            raise DataError(
                f"{path}: line {number} has {len(cells)} cells; allowed: 5, of which the second is the reader"
            )
        for item in cells[3].split():
            if item not in known:
                raise DataError(f"{path}: line {number} names the news {item!r}, which {_FILES[0]} does not have")
            pairs[cells[1], item] = None
        if len(pairs) > _MOST_CLICKS:
            raise DataError(f"{path}: has more than {_MOST_CLICKS} clicks")
    return [reader for reader, _ in pairs], [item for _, item in pairs]
