"""Sizes in bytes as people write them."""

import re
from typing import Final

from fedsim.errors import FedsimError

_BYTES: Final = {
    "b": 1,
    **{f"{letter}b": 1000**power for power, letter in enumerate("kmgt", 1)},
    **{f"{letter}ib": 1024**power for power, letter in enumerate("kmgt", 1)},
}
_SIZE: Final = re.compile(r"(\d+(?:\.\d+)?)\s*([a-zA-Z]+)")
_SHOWN: Final = (("TiB", 2**40), ("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10))


def parse_size(text: str, field: str) -> int:
    """Return the bytes of a size such as ``5 GiB``, ``500 MB`` or ``0 B``."""
    found = _SIZE.fullmatch(text.strip())
    if found is None or found[2].lower() not in _BYTES:
        raise FedsimError(
            f"{field}: {text!r} is not allowed; it must be a number and a unit, such as '5 GiB' or '500 MB'"
        )
    return int(float(found[1]) * _BYTES[found[2].lower()])


def show_size(size_bytes: int) -> str:
    """Return a size for readers."""
    for unit, unit_bytes in _SHOWN:
        if size_bytes >= unit_bytes:
            return f"{size_bytes / unit_bytes:.1f} {unit}"
    return f"{size_bytes} B"
