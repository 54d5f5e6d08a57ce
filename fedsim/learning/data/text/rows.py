"""Files of texts: what stands in each line, or which line has another form."""

import itertools
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, TypeVar

from fedsim.errors import DataError
from fedsim.inputs.files import shortened
from fedsim.inputs.lines import read_lines

Row = TypeVar("Row")
_MOST_CLICKS: Final = 50_000_000
_LARGEST_PLAYS: Final = 1 << 26
_STARS: Final = range(1, 6)
_NAMES: Final = ("reviewerID", "reviewText", "overall"), ("user_id", "text", "rating")
"""Reviewer, text and stars: until 2018, and from 2023 on."""


def read_rows(path: Path, read: Callable[[str], Row]) -> Iterator[Row]:
    """Yield what ``read`` makes of each line; the file and the line are said before what it raises as `ValueError`."""
    for number, line in enumerate(read_lines(path, DataError), 1):
        try:
            row = read(line)
        except ValueError as error:
            raise DataError(f"{path}: line {number} {error}") from None
        yield row


def read_news(path: Path) -> dict[str, tuple[str, str]]:
    """Return title and topic of each news item of MIND's by its name."""
    news: dict[str, tuple[str, str]] = {}
    for item, topic, _, title, *_ in read_rows(path, _cells(4, "name, topic, part of the topic, title, and more")):
        news.setdefault(item, (title, topic))
    return news


def read_clicks(path: Path, known: Mapping[str, int]) -> tuple[list[str], list[int]]:
    """Return reader and news item of each of MIND's clicks, each pair once, in the order of the file."""
    cells = _cells(5, "5, of which the second is the reader")

    def clicks(line: str) -> dict[tuple[str, int], None]:
        _, reader, _, history, *_ = cells(line)
        if wrong := [item for item in history.split() if item not in known]:
            raise ValueError(f"names the news {wrong[0]!r}, which news.tsv does not have")
        return {(reader, known[item]): None for item in history.split()}

    pairs: dict[tuple[str, int], None] = {}
    for row in read_rows(path, clicks):
        pairs.update(row)
        if len(pairs) > _MOST_CLICKS:
            raise DataError(f"{path}: has more than {_MOST_CLICKS} clicks")
    return [reader for reader, _ in pairs], [item for _, item in pairs]


def read_reviews(path: Path) -> Iterator[tuple[str, str, int]]:
    """Yield reviewer, text and stars of each of Amazon's reviews with a text."""
    return (row for row in read_rows(path, _review) if row[1].strip())


def read_speeches(path: Path) -> dict[str, str]:
    """Return all text of each role of a play, in the order of their first speeches."""
    said: dict[str, list[str]] = {}
    lines = enumerate(read_lines(path, DataError, _LARGEST_PLAYS), 1)
    for spoken, speech in itertools.groupby(lines, lambda line: bool(line[1].strip())):
        if spoken:
            number, name = next(speech)
            if not name.endswith(":"):
                raise DataError(f"{path}: line {number} begins a speech without a name; allowed: a name and ':'")
            said.setdefault(name[:-1], []).extend(line for _, line in speech)
    if not said:
        raise DataError(f"{path}: has no speeches; allowed: a name and ':', lines, an empty line")
    return {role: "\n".join(lines) for role, lines in said.items()}


def _cells(least: int, form: str) -> Callable[[str], list[str]]:
    """Return a reader of cells between tabulators: at least some, of which the first two are not empty."""

    def cells(line: str) -> list[str]:
        found = line.split("\t")
        if len(found) < least or not found[0] or not found[1]:
            raise ValueError(f"has {len(found)} cells; allowed: {form}")
        return found

    return cells


def _review(line: str) -> tuple[str, str, int]:
    """Return reviewer, text and stars; an empty text for an empty line."""
    if not line.strip():
        return "", "", 0
    try:
        found: Any = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"is no JSON: {error}") from None
    for names in _NAMES if isinstance(found, dict) else ():
        reviewer, text, stars = (found.get(name) for name in names)
        if isinstance(reviewer, str) and isinstance(text or "", str) and stars in _STARS:
            return reviewer, text or "", int(stars)
    raise ValueError(
        f"is no review: {shortened(line)}; allowed: reviewerID, reviewText and overall, or user_id, text and rating, "
        f"of 1 to {_STARS[-1]} stars"
    )
