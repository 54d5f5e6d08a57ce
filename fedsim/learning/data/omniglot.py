"""Omniglot: characters of many alphabets by the people who drew them."""

import io
import re
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, ClassVar, Final, Literal, NamedTuple, get_args

import numpy as np
from pydantic import Field

from fedsim.errors import DataError
from fedsim.inputs.files import check_file
from fedsim.learning.data.datasets import Dataset, Images
from fedsim.learning.data.in_files import InFiles, parted

_MAX_BYTES: Final = 1 << 26
_MOST: Final = 100_000
"""Most members of an archive."""
_LARGEST: Final = 1 << 16
"""Most bytes of a drawing."""
_SIDE: Final = 105
_DRAWING: Final = re.compile(r"[^/]+/([^/]+)/(character\d+)/\d+_(\d\d)\.png")


_Part = Literal["small1", "small2", "full"]


class _Drawing(NamedTuple):
    alphabet: str
    character: str
    drawer: str
    pixels: Images


class Omniglot(InFiles):
    """Omniglot: characters drawn by 20 people each, black on white (Lake, Salakhutdinov and Tenenbaum 2015).

    Every pair of an alphabet and the number of a drawer is a user, since the publishers do not say whether one number
    is one person in all alphabets. Drawings of each fifth number (05, 10, 15, 20) are for testing, so that no test user
    is in training. Labels are characters in the order of their names.

    Attributes
    ----------
    part : ``"small1"``, ``"small2"`` or ``"full"``
        The archive: 136 characters of 5 alphabets, 156 of 5, 964 of 30.
    side : int, 1 to 105
        Pixels to which drawings of 105 x 105 are made smaller, by means of what falls into one pixel.
    """

    kind: ClassVar[str] = "omniglot"
    source: ClassVar[str] = (
        "github.com/brendenlake/omniglot, folder python, images_background_small1.zip, images_background_small2.zip or "
        "images_background.zip (part = 'full'); put it into omniglot"
    )

    part: _Part = "small1"
    side: Annotated[int, Field(ge=1, le=_SIDE)] = 28

    def where(self) -> str:
        return f"omniglot/images_background{'' if self.part == 'full' else '_' + self.part}.zip"

    def wanted(self) -> tuple[tuple[str, ...], ...]:
        return ((self.where(),),)

    def found(self, data_dir: Path | None = None) -> tuple[str, ...]:
        parts = [self.model_copy(update={"part": part}) for part in get_args(_Part)]
        return tuple(f"part = '{one.part}': {one.where()}" for one in parts if one.available(data_dir))

    def read(self, place: Path) -> Dataset:
        path = place / self.where()
        drawings = list(self._drawings(path))
        train = np.array([int(drawing.drawer) % 5 != 0 for drawing in drawings], dtype=bool)
        if not train.any() or train.all():
            raise DataError(f"{path}: has no drawings, or none of each fifth drawer; allowed: Omniglot's archives")
        names, labels = np.unique([f"{one.alphabet}/{one.character}" for one in drawings], return_inverse=True)
        images = np.stack([drawing.pixels for drawing in drawings])
        users = [f"{drawing.alphabet}/{drawing.drawer}" for drawing in drawings]
        return parted(images, labels, train, users, classes=len(names), pixel_max=255)

    def _drawings(self, path: Path) -> Iterator[_Drawing]:
        check_file(path, _MAX_BYTES, DataError)
        try:
            with zipfile.ZipFile(path) as archive:
                members = [one for one in archive.infolist() if _DRAWING.fullmatch(one.filename)]
                if len(members) > _MOST or any(one.file_size > _LARGEST for one in members):
                    raise DataError(f"{path}: has more than {_MOST} drawings, or one of more than {_LARGEST} bytes")
                for one in sorted(members, key=lambda member: member.filename):
                    alphabet, character, drawer = _DRAWING.fullmatch(one.filename).groups()  # type: ignore[union-attr]
                    yield _Drawing(alphabet, character, drawer, self._pixels(archive.read(one)))
        except (
            zipfile.BadZipFile,
            zlib.error,
            OSError,
            EOFError,
            ValueError,
            RuntimeError,
            NotImplementedError,
        ) as error:
            raise DataError(f"{path}: cannot be read: {error}") from None

    def _pixels(self, content: bytes) -> Images:
        """Return a drawing from a PNG file, shape (side, side, 1)."""
        from PIL import Image

        with Image.open(io.BytesIO(content), formats=["PNG"]) as image:
            if image.size != (_SIDE, _SIDE):
                raise ValueError(f"a drawing of {image.size[0]} x {image.size[1]}; allowed: {_SIDE} x {_SIDE}")
            small = image.convert("L").resize((self.side, self.side), Image.Resampling.BOX)
        return np.asarray(small, dtype=np.uint8)[..., None]
