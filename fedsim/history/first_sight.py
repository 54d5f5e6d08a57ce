"""A value in a few lines: as text, and as HTML for notebooks."""

from collections.abc import Sequence
from html import escape

Lines = Sequence[tuple[str, str]]


class FirstSight:
    """Shows itself as a title, and a line for each name and value."""

    def _first_sight(self) -> tuple[str, Lines]:
        raise NotImplementedError

    def __repr__(self) -> str:
        title, lines = self._first_sight()
        width = max((len(name) for name, _ in lines), default=0)
        return "\n".join([title, *(f"  {name:<{width}}  {value}" for name, value in lines)])

    __str__ = __repr__

    def _repr_html_(self) -> str:
        title, lines = self._first_sight()
        rows = "".join(f"<tr><th>{escape(name)}</th><td>{escape(value)}</td></tr>" for name, value in lines)
        return f"<table><caption>{escape(title)}</caption>{rows}</table>"
