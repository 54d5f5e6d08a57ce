"""A record as a row of bytes with a checksum, and back."""

import json
import struct
import zlib
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from fedsim.learning.store.contracts import Record

Row = tuple[bytes, bytes, bytes, int]
"""Digest, names, float64 numbers in little-endian order, checksum."""

NAMES_KEPT: Final = 1024
"""Sets of names that are read once; the records of a run have few."""


def row_of(digest: str, record: Record) -> Row:
    key, names = digest.encode(), _encoded(tuple(record))
    numbers = struct.pack(f"<{len(record)}d", *record.values())
    return key, names, numbers, _checksum(key, names, numbers)


def record_of(row: Sequence[object]) -> tuple[str, Record] | None:
    """Return digest and record of a row, or None if it is damaged."""
    key, names, numbers, checksum = row
    if not (isinstance(key, bytes) and isinstance(names, bytes) and isinstance(numbers, bytes)):
        return None
    if checksum != _checksum(key, names, numbers):
        return None
    decoded = _decoded(names)
    return key.decode(), dict(zip(decoded, struct.unpack(f"<{len(decoded)}d", numbers), strict=True))


def _checksum(key: bytes, names: bytes, numbers: bytes) -> int:
    lengths = struct.pack("<2q", len(key), len(names))
    return zlib.crc32(numbers, zlib.crc32(names, zlib.crc32(key, zlib.crc32(lengths))))


@lru_cache(NAMES_KEPT)
def _encoded(names: tuple[str, ...]) -> bytes:
    return json.dumps(names).encode()


@lru_cache(NAMES_KEPT)
def _decoded(names: bytes) -> tuple[str, ...]:
    return tuple(json.loads(names))
