"""MNIST and Fashion-MNIST, where torchvision puts them."""

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar, Final

from fedsim.learning.data.datasets import Dataset
from fedsim.learning.data.images.idx import FILES, read_set
from fedsim.learning.data.in_files import OR, InFiles

_ARCHIVES: Final = ", ".join(f"{name}.gz" for name in FILES)


class MNIST(InFiles):
    """MNIST: 60,000 and 10,000 handwritten digits, 28 x 28 grey, 10 classes (LeCun, Cortes and Burges)."""

    source: ClassVar[str] = f"yann.lecun.com/exdb/mnist, {_ARCHIVES}, in MNIST/raw"
    place: ClassVar[str] = "MNIST/raw"
    paths: ClassVar[tuple[str, ...]] = tuple(f"{{where}}/{name}{OR}{{where}}/{name}.gz" for name in FILES)
    tells_users: ClassVar[bool] = False
    mirrors: ClassVar[tuple[str, ...]] = (
        "https://ossci-datasets.s3.amazonaws.com/mnist/",
        "http://yann.lecun.com/exdb/mnist/",
    )
    archives: ClassVar[Mapping[str, str]] = {
        "train-images-idx3-ubyte.gz": "f68b3c2dcbeaaa9fbdd348bbdeb94873",
        "train-labels-idx1-ubyte.gz": "d53e105ee54ea40749a09fcbcd1e9432",
        "t10k-images-idx3-ubyte.gz": "9fb629c4189551a2d022fa330f9573f3",
        "t10k-labels-idx1-ubyte.gz": "ec29112dd5afa0611ce80d1b7f02629c",
    }
    published: ClassVar[Mapping[str, str]] = {
        "train-images-idx3-ubyte": "6bbc9ace898e44ae57da46a324031adb",
        "train-labels-idx1-ubyte": "a25bea736e30d166cdddb491f175f624",
        "t10k-images-idx3-ubyte": "2646ac647ad5339dbf082846283269ea",
        "t10k-labels-idx1-ubyte": "27ae3e4e09519cfbb04c329615203637",
    }

    def read(self, place: Path) -> Dataset:
        return Dataset(*read_set(self.files(place), self.content, 10), classes=10, pixel_max=255)


class FashionMNIST(MNIST):
    """Fashion-MNIST: 60,000 and 10,000 pieces of clothing, 28 x 28 grey, 10 classes (Xiao et al. 2017)."""

    source: ClassVar[str] = f"github.com/zalandoresearch/fashion-mnist, data/fashion: {_ARCHIVES}, in FashionMNIST/raw"
    place: ClassVar[str] = "FashionMNIST/raw"
    mirrors: ClassVar[tuple[str, ...]] = ("http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",)
    archives: ClassVar[Mapping[str, str]] = {
        "train-images-idx3-ubyte.gz": "8d4fb7e6c68d591d4c3dfef9ec88bf0d",
        "train-labels-idx1-ubyte.gz": "25c81989df183df01b3e8a0aad5dffbe",
        "t10k-images-idx3-ubyte.gz": "bef4ecab320f06d8554ea6380940ec79",
        "t10k-labels-idx1-ubyte.gz": "bb300cfdad3c16e7a12a480ee83cd310",
    }
    published: ClassVar[Mapping[str, str]] = {
        "train-images-idx3-ubyte": "f4a8712d7a061bf5bd6d2ca38dc4d50a",
        "train-labels-idx1-ubyte": "9018921c3c673c538a1fc5bad174d6f9",
        "t10k-images-idx3-ubyte": "8181f5470baa50b63fa0f6fddb340f0a",
        "t10k-labels-idx1-ubyte": "15d484375f8d13e6eb1aabb0c3f46965",
    }
