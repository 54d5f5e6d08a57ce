"""CIFAR-10 and CIFAR-100, where torchvision puts them."""

import pickle
import warnings
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import ClassVar

import numpy as np

from fedsim.learning.data.datasets import Dataset
from fedsim.learning.data.in_files import InFiles


class CIFAR10(InFiles):
    """CIFAR-10: 50,000 and 10,000 photographs, 32 x 32 in colour, 10 classes (Krizhevsky 2009)."""

    source: ClassVar[str] = "www.cs.toronto.edu/~kriz/cifar.html, cifar-10-python.tar.gz, unpacked"
    place: ClassVar[str] = "cifar-10-batches-py"
    tells_users: ClassVar[bool] = False
    mirrors: ClassVar[tuple[str, ...]] = ("https://www.cs.toronto.edu/~kriz/",)
    archives: ClassVar[Mapping[str, str]] = {"cifar-10-python.tar.gz": "c58f30108f718f92721af3b95e74349a"}
    published: ClassVar[Mapping[str, str]] = {
        "data_batch_1": "c99cafc152244af753f735de768cd75f",
        "data_batch_2": "d4bba439e000b95fd0a9bffe97cbabec",
        "data_batch_3": "54ebc095f3ab1f0389bbae665268c751",
        "data_batch_4": "634d18415352ddfa80567beed471001a",
        "data_batch_5": "482c414d41f54cd18b22e5b47cb7c3cb",
        "test_batch": "40351d587109b95175f43aff81a1287e",
    }
    classes: ClassVar[int] = 10
    label_key: ClassVar[str] = "labels"

    def read(self, place: Path) -> Dataset:
        with warnings.catch_warnings(), ThreadPoolExecutor(2) as readers:
            # The pickles describe their arrays in a way that NumPy means to give up.
            warnings.filterwarnings("ignore", category=np.exceptions.VisibleDeprecationWarning)
            # A pickle can run code; those whose checksum is not the published one are refused unread.
            contents = readers.map(self.content, self.files(place))
            batches = [pickle.loads(content, encoding="latin1") for content in contents]  # noqa: S301
        parts = [np.concatenate([batch["data"] for batch in of]) for of in (batches[:-1], batches[-1:])]
        # Three times as fast as to transpose and copy.
        x, test_x = (np.stack(np.split(part, 3, axis=1), axis=-1).reshape(-1, 32, 32, 3) for part in parts)
        y, test_y = (np.concatenate([batch[self.label_key] for batch in of]) for of in (batches[:-1], batches[-1:]))
        return Dataset(x, y, test_x, test_y, classes=self.classes, pixel_max=255)


class CIFAR100(CIFAR10):
    """CIFAR-100: 50,000 and 10,000 photographs, 32 x 32 in colour, 100 classes (Krizhevsky 2009)."""

    source: ClassVar[str] = "www.cs.toronto.edu/~kriz/cifar.html, cifar-100-python.tar.gz, unpacked"
    place: ClassVar[str] = "cifar-100-python"
    archives: ClassVar[Mapping[str, str]] = {"cifar-100-python.tar.gz": "eb9058c3a382ffc7106e4002c42a8d85"}
    published: ClassVar[Mapping[str, str]] = {
        "train": "16019d7e3df5f24257cddd939b257f8d",
        "test": "f0ef6b0ae62326f3e7ffdfab6717acfc",
    }
    classes: ClassVar[int] = 100
    label_key: ClassVar[str] = "fine_labels"
