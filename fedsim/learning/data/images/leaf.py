"""LEAF's JSON files: images and labels of each writer."""

import itertools
import json
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Final

import numpy as np

from fedsim.arrays import IntArray
from fedsim.errors import DataError
from fedsim.inputs.files import read_text
from fedsim.learning.data.datasets import Images
from fedsim.learning.data.in_files import MAX_BYTES, form_of

CLASSES: Final = 62
Writer = tuple[Path, str]
Samples = tuple[Images, IntArray]

_SIDE: Final = 28
_FORM: Final = (
    "a file of LEAF's, with users, num_samples of each, and user_data with x of 784 numbers from 0 to 1 and y, whole "
    "numbers from 0 to 61"
)


def samples_of(paths: Sequence[Path], most: int | None, only: Collection[str] | None = None) -> dict[Writer, Samples]:
    """Return images and labels of each writer, of at most some of them, or of those with some names."""
    found = dict(itertools.islice((one for path in paths for one in _writers(path, only)), most))
    if not found:
        whose = "has samples" if only is None else f"of the first {len(only)} for training has samples here"
        raise DataError(
            f"{paths[0].parent}: no writer {whose}; allowed: files of LEAF's with samples, and with users = ... those "
            "of -t sample"
        )
    return found


def _writers(path: Path, only: Collection[str] | None) -> Iterator[tuple[Writer, Samples]]:
    """Yield images and labels of each writer with samples in one of LEAF's files; of some alone if named."""
    with form_of(path, _FORM):
        content = json.loads(read_text(path, DataError, max_bytes=MAX_BYTES))
        names, of = content["users"], content["user_data"]
        counts = content.get("num_samples", [len(of[name]["y"]) for name in names])
        for name, count in zip(names, counts, strict=True):
            if only is not None and name not in only:
                continue
            x, y = (np.asarray(of[name][key], dtype=np.float64) for key in "xy")
            wrong = y[(y != np.rint(y)) | (y < 0) | (y >= CLASSES)]
            if wrong.size:
                raise ValueError(f"a label of {name!r} is {wrong[0]}")
            if len(x) != count or y.shape != (count,) or x.shape[1:] not in ((), (_SIDE**2,)):
                raise ValueError(f"{name!r} has images of shape {x.shape}, {len(y)} labels, num_samples {count}")
            if count and not 0 <= x.min() <= x.max() <= 1:
                raise ValueError(f"{name!r} has numbers from {x.min()} to {x.max()}")
            if count:
                pixels = np.rint(255 * x).astype(np.uint8).reshape(-1, _SIDE, _SIDE, 1)
                yield (path, str(name)), (pixels, y.astype(np.int64))
