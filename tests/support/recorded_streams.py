"""Random streams that remember their names, and the names that a docstring promises."""

import re
from typing import Any

from fedsim.streams import GeneratorPool, Key, Streams

_NAME = re.compile(r"``([a-z]+(?:-[a-z]+)*)``")


class RecordedStreams(Streams):
    """Streams that write down which of them were asked for."""

    def __init__(self, seed: int, path: tuple[Key, ...] = ()) -> None:
        super().__init__(seed, path)
        self.asked: set[tuple[Any, ...]] = set()

    def digest(self, name: str, *keys: Key) -> bytes:
        self.asked.add((name, *keys))
        return super().digest(name, *keys)

    def pool(self, name: str) -> GeneratorPool:
        self.asked.add((name,))
        return super().pool(name)

    @property
    def names(self) -> set[Any]:
        return {name for name, *_ in self.asked}


def promised(documented: Any) -> set[str]:
    """Return the names of streams in a docstring: those between the word "Stream" and the end of its paragraph."""
    words = documented.__doc__ or ""
    paragraph = re.search(r"^ *Streams?\b.*?(?:\n *\n|\Z)", words, re.MULTILINE | re.DOTALL)
    return set(_NAME.findall(paragraph.group())) if paragraph else set()
