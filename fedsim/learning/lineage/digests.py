"""Digests: hashes of all that determines a number."""

from hashlib import blake2b
from typing import Final

_KINDS: Final = {kind: kind.__name__.encode() for kind in (str, bytes, int, float, type(None))}


def digest_of(*ingredients: str | bytes | float | None) -> str:
    """Return a hash of ingredients in their order, 32 hexadecimal digits."""
    parts = []
    for item in ingredients:
        kind = type(item)
        encoded = item if isinstance(item, bytes) else repr(item).encode()
        name = _KINDS[kind] if kind in _KINDS else kind.__name__.encode()
        parts.append(b"%s%d:%s" % (name, len(encoded), encoded))
    return blake2b(b"".join(parts), digest_size=16).hexdigest()
