"""What the tables of one run have in common: names of clients, the date of its beginning, and notes.

Tables are read deep inside the parts that they are for, so that these facts are a context of the run.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field


@dataclass
class Reading:
    """The tables that a run has read so far."""

    notes: list[str] = field(default_factory=list)
    clients: dict[str, int] = field(default_factory=dict)
    named_in: str = ""
    numbered_in: str = ""
    origin_us: float | None = None
    origin_of: str = ""


_NOW: ContextVar[Reading | None] = ContextVar("reading", default=None)


@contextmanager
def reading() -> Iterator[Reading]:
    """Read all tables in here as those of one run."""
    now = Reading()
    token = _NOW.set(now)
    try:
        yield now
    finally:
        _NOW.reset(token)


def current() -> Reading:
    """Return the run's tables; outside of a run, those of one table."""
    return _NOW.get() or Reading()


def note(sentence: str) -> None:
    """Add a sentence to the run's notes, once."""
    notes = current().notes
    if sentence not in notes:
        notes.append(sentence)
