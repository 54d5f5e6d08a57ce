"""MIND: titles of news by topic, and who clicked on them."""

from pathlib import Path
from typing import ClassVar, Literal

import numpy as np

from fedsim.learning.data.datasets import Dataset, data_folder
from fedsim.learning.data.in_files import FolderName
from fedsim.learning.data.text.in_words import InWords, first_texts
from fedsim.learning.data.text.rows import read_clicks, read_news


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
    paths: ClassVar[tuple[str, ...]] = ("{where}/news.tsv",)
    users_path: ClassVar[str] = "{where}/behaviors.tsv"

    folder: FolderName = "MINDsmall_train"
    samples: Literal["news", "clicks"] = "news"

    def found(self, data_dir: Path | None = None) -> tuple[str, ...]:
        folders = [path.parent for path in sorted(data_folder(data_dir).glob("*/news.tsv"))]
        clicks = ["with" if (folder / "behaviors.tsv").is_file() else "without" for folder in folders]
        return tuple(f"folder = '{one.name}' {two} behaviors.tsv" for one, two in zip(folders, clicks, strict=True))

    @property
    def with_users(self) -> bool:
        return self.samples == "clicks"

    def read(self, place: Path) -> Dataset:
        path, *of_clicks = self.files(place)
        news = read_news(path)
        titles, topics = [title for title, _ in news.values()], [topic for _, topic in news.values()]
        names, numbers = np.unique(topics, return_inverse=True)
        train = first_texts(path, len(news))
        if self.samples == "news":
            return self.coded(path, titles, numbers, None, train, len(names), place)
        behaviors = of_clicks[0]
        readers, at = read_clicks(behaviors, {item: number for number, item in enumerate(news)})
        return self.coded(behaviors, [titles[one] for one in at], numbers[at], readers, train[at], len(names), place)
