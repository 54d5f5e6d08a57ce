"""Which models of a run stay in the store."""

import re
from dataclasses import dataclass
from typing import Final, Self

from fedsim.errors import FedsimError

_EVERY: Final = re.compile(r"every +([1-9][0-9]*)")


@dataclass(frozen=True)
class Keeping:
    """Which models of a run stay in the store once a newer one is there; the newest stays always."""

    every: int | None = 1

    def __post_init__(self) -> None:
        if self.every is not None and self.every < 1:
            raise FedsimError(f"keep-models: every {self.every!r} is not allowed; the number must be at least 1")

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the rule that a text names: ``all``, ``last`` or ``every N``."""
        if text == "all":
            return cls(1)
        if text == "last":
            return cls(None)
        if (found := _EVERY.fullmatch(text)) is None:
            raise FedsimError(
                f"keep-models: {text!r} is not allowed; it must be all, last or every N, such as 'every 10'"
            )
        return cls(int(found[1]))

    def __str__(self) -> str:
        return {None: "last", 1: "all"}.get(self.every, f"every {self.every}")

    def stays(self, version: int) -> bool:
        return self.every is not None and version % self.every == 0
