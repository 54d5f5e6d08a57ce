"""Drawings in PNG files of an archive."""

import io
import zipfile
from typing import Final

import numpy as np

from fedsim.learning.data.datasets import Images

_LARGEST: Final = 1 << 16


def read_drawing(archive: zipfile.ZipFile, name: str, whole: int, side: int) -> Images:
    """Return a square drawing in grey, shape (side, side, 1), made smaller by means of what falls into one pixel."""
    from PIL import Image

    if archive.getinfo(name).file_size > _LARGEST:
        raise ValueError(f"{name} has more than {_LARGEST} bytes")
    with Image.open(io.BytesIO(archive.read(name)), formats=["PNG"]) as image:
        if image.size != (whole, whole):
            raise ValueError(f"a drawing of {image.size[0]} x {image.size[1]}; allowed: {whole} x {whole}")
        small = image.convert("L").resize((side, side), Image.Resampling.BOX)
    return np.asarray(small, dtype=np.uint8)[..., None]
