"""What the tables of one run have in common: names of clients, the date of its beginning, and notes."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import PurePath


@dataclass
class Reading:
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


def note(where: str, what: str) -> None:
    """Add a sentence about a table to the run's notes, once, in which its file has no folder."""
    notes, sentence = current().notes, f"{short(where)}: {what}"
    if sentence not in notes:
        notes.append(sentence)


def counted(where: str, count: int, what: str) -> None:
    """Note how many rows, devices or the like of a table were read in another way than they stand there, if any."""
    if count and where:
        note(where, f"{count:,} {what}")


def short(where: str) -> str:
    """Return the field and the name of a file, without its folder.

    >>> short("network.path: /data/rates.csv")
    'network.path: rates.csv'
    """
    field, colon, path = where.rpartition(": ")
    return f"{field}{colon}{PurePath(path).name}"
