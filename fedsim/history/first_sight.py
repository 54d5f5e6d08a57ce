"""A value in a few lines: as text, and as HTML for notebooks."""

from collections.abc import Sequence
from html import escape

Lines = Sequence[tuple[str, str]]


def as_text(title: str, lines: Lines) -> str:
    """Return a title, and a line for each name and value."""
    width = max((len(name) for name, _ in lines), default=0)
    return "\n".join([title, *(f"  {name:<{width}}  {value}" for name, value in lines)])


def as_html(title: str, lines: Lines) -> str:
    """Return the same as a table of HTML, in which names and values are text."""
    rows = "".join(f"<tr><th>{escape(name)}</th><td>{escape(value)}</td></tr>" for name, value in lines)
    return f"<table><caption>{escape(title)}</caption>{rows}</table>"
