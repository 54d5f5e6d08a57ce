"""Random choices that Hypothesis makes, remembers and shrinks."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st


@dataclass(frozen=True)
class Drawn:
    """Choices by the function that a composite strategy is given."""

    draw: Callable[[Any], Any]

    def pick(self, choices: Sequence[Any]) -> Any:
        """Return one of the choices; the first is the simplest."""
        return choices[self.draw(st.integers(0, len(choices) - 1))]

    def chance(self, percent: int) -> bool:
        """Return True in so many cases of a hundred; False is the simplest."""
        return percent > 0 and self.draw(st.integers(0, 99)) >= 100 - percent


@st.composite
def made_by(draw: Callable[[Any], Any], make: Callable[..., Any], *arguments: object) -> Any:
    """Return what a function makes from random choices and other arguments."""
    return make(Drawn(draw), *arguments)
