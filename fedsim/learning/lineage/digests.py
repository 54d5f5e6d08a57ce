"""Digests: hashes of all that determines a number."""

from collections.abc import Sequence
from hashlib import blake2b
from typing import Final, NamedTuple

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


class CohortDigests(NamedTuple):
    """Ingredients of the digests of a cohort's trainings, which are computed when they are read."""

    start: "blake2b"
    named: Sequence[bytes]

    def each(self, part: slice = slice(None)) -> list[str]:
        found = []
        for name in self.named[part]:
            hashed = self.start.copy()
            hashed.update(name)
            found.append(hashed.hexdigest())
        return found

    def whole(self) -> str:
        """Return one digest of all of them in their order."""
        hashed = self.start.copy()
        hashed.update(b"cohort " + b"".join(self.named))
        return hashed.hexdigest()
