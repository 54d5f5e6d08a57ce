"""Headers of IDX files, sound and damaged."""

import struct

import pytest

from fedsim.errors import DataError
from fedsim.learning.data.images.idx import array_of, read_set

IMAGES = struct.pack(">IIII", 2051, 5, 28, 28) + bytes(5 * 784)
LABELS = struct.pack(">II", 2049, 5) + bytes(5)


def test_items_are_read_and_pairs_belong_together(tmp_path):
    assert array_of(IMAGES, 3, tmp_path).shape == (5, 28, 28)
    files = [tmp_path / name for name in ("images", "labels", "test-images", "test-labels")]
    content = dict(zip(files, (IMAGES, LABELS, IMAGES, LABELS), strict=True))
    assert [array.shape for array in read_set(files, content.__getitem__, 1)] == [(5, 28, 28, 1), (5,)] * 2
    content[files[3]] = LABELS[:-2] + bytes([7, 0])
    with pytest.raises(DataError, match=r"test-labels: label 7 in row 3; labels must lie in 0\.\.0"):
        read_set(files, content.__getitem__, 1)
    content[files[1]] = struct.pack(">II", 2049, 4) + bytes(4)
    with pytest.raises(DataError, match="has 5 images, and labels has 4 labels"):
        read_set(files, content.__getitem__, 1)


DAMAGED = {
    "another magic": (b"\x00\x00\x08\x01" + IMAGES[4:], "begins with '00000801'; allowed: '00000803'"),
    "empty": (b"", "begins with ''"),
    "cut within the header": (IMAGES[:9], "ends within its header of 16 bytes"),
    "cut within the images": (IMAGES[:-1], "claims 3936 bytes for 5 items, and it has 3935"),
    "longer": (IMAGES + b"x", "and it has 3937"),
    "no image": (struct.pack(">IIII", 2051, 0, 28, 28), "for 0 items"),
    "2^32 images": (struct.pack(">IIII", 2051, 2**32 - 1, 28, 28) + bytes(784), "for 4294967295 items"),
    "a side of 0": (struct.pack(">IIII", 2051, 5, 0, 28), "side of 0; allowed: 1 to 1024"),
    "a side of 2^32": (struct.pack(">IIII", 2051, 5, 2**32 - 1, 28), "side of 4294967295"),
}


@pytest.mark.parametrize("damage", DAMAGED)
def test_a_damaged_header_is_named(damage, tmp_path):
    content, words = DAMAGED[damage]
    with pytest.raises(DataError, match=words):
        array_of(content, 3, tmp_path)
