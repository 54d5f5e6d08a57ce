"""Omniglot: characters of many alphabets by the people who drew them."""

import io
import re
import zipfile
from pathlib import Path
from typing import Annotated, ClassVar, Final, Literal

import numpy as np
from pydantic import Field

from fedsim.errors import DataError
from fedsim.inputs.files import check_file
from fedsim.learning.data.datasets import Dataset, Images
from fedsim.learning.data.in_files import InFiles, form_of, parted

_MAX_BYTES: Final = 1 << 26
_LARGEST: Final = 1 << 16
_SIDE: Final = 105
_DRAWING: Final = re.compile(r"[^/]+/([^/]+)/(character\d+)/\d+_(\d\d)\.png")


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

    source: ClassVar[str] = (
        "github.com/brendenlake/omniglot, folder python, images_background_small1.zip, images_background_small2.zip or "
        "images_background.zip (part = 'full'); put it into omniglot"
    )
    place: ClassVar[str] = "omniglot"
    paths: ClassVar[tuple[str, ...]] = ("{where}",)
    archive: ClassVar[str] = "part"

    part: Literal["small1", "small2", "full"] = "small1"
    side: Annotated[int, Field(ge=1, le=_SIDE)] = 28

    def where(self) -> str:
        return f"omniglot/images_background{'' if self.part == 'full' else '_' + self.part}.zip"

    def read(self, place: Path) -> Dataset:
        path = check_file(place / self.where(), _MAX_BYTES, DataError)
        with form_of(path, "an archive of Omniglot's"), zipfile.ZipFile(path) as archive:
            known = filter(None, map(_DRAWING.fullmatch, sorted({*archive.namelist()})))
            drawings = {drawing.groups(): _drawing(archive, drawing.string, _SIDE, self.side) for drawing in known}
            images = np.stack([*drawings.values()])
        characters = [f"{alphabet}/{character}" for alphabet, character, _ in drawings]
        users = [f"{alphabet}/{drawer}" for alphabet, _, drawer in drawings]
        train = np.array([int(drawer) % 5 != 0 for *_, drawer in drawings], dtype=bool)
        return parted(path, images, characters, train, users, pixel_max=255)


def _drawing(archive: zipfile.ZipFile, name: str, whole: int, side: int) -> Images:
    """Return a square drawing in grey, shape (side, side, 1), made smaller by means of what falls into one pixel."""
    from PIL import Image

    if archive.getinfo(name).file_size > _LARGEST:
        raise ValueError(f"{name} has more than {_LARGEST} bytes")
    with Image.open(io.BytesIO(archive.read(name)), formats=["PNG"]) as image:
        if image.size != (whole, whole):
            raise ValueError(f"a drawing of {image.size[0]} x {image.size[1]}; allowed: {whole} x {whole}")
        small = image.convert("L").resize((side, side), Image.Resampling.BOX)
    return np.asarray(small, dtype=np.uint8)[..., None]
