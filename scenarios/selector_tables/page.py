"""The page of the tables: Markdown with a sentence for each row that loses, and its place in a page."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Final

from selector_tables.crowds import CROWDS
from selector_tables.methods import EVIDENCE
from selector_tables.reasons import REASONS
from selector_tables.tables import HEADS, MEANS, Row, cells, with_half

MARKS: Final = ("<!-- tables -->", "<!-- end of tables -->")
"""Lines of a page between which the tables stand."""


class Facts(dict[str, SimpleNamespace]):
    """The figures of rows by method, as sentences name them; those of a row that is not there are NaN."""

    def __init__(self, rows: Sequence[Row]) -> None:
        super().__init__({row.method: _facts(row.means, row.later_s.mean) for row in rows})

    def __missing__(self, method: str) -> SimpleNamespace:
        return _facts(dict.fromkeys(MEANS, math.nan), math.nan)


def _facts(means: Mapping[str, float], later: float) -> SimpleNamespace:
    in_per_cent = {name: 100.0 * means[name] for name in ("final_accuracy", "empty", "wasted", "clients")}
    return SimpleNamespace(**{**means, **in_per_cent, "later": later})


def reasons_of(table: str, rows: Sequence[Row], open_rows: Sequence[Row]) -> dict[str, str]:
    """Return the sentences of a table by method, with their numbers."""
    own, other, said = Facts(rows), Facts(open_rows), REASONS.get(table, {})
    return {
        row.method: said[row.method].format(own=own[row.method], its=own[row.beside], of=own, open=other)
        for row in rows
        if row.method in said
    }


def markdown(
    table: str,
    rows: Sequence[Row],
    reasons: Mapping[str, str],
    exact: Mapping[str, Row],
    other: Mapping[str, Row] | None = None,
) -> str:
    """Return a table for a page, without the rows that sentences and columns name as evidence."""
    crowd = CROWDS[table]
    columns = ["selector", "to 80 % s", "later than uniform s", "reached", "final accuracy", "rounds to 80 %"]
    columns += ["round s", "used a round", "Jain", *(["noise / signal"] if crowd.private else [])]
    kept = [HEADS.index(head) for head in columns]
    beside = [] if other is None else ["with exact numbers", "without privacy"]
    lines = [f"### {crowd.title}", "", f"{crowd.about}; {crowd.seconds:.0f} s.", ""]
    heads = [*columns, *beside, "why it loses, or what to know"]
    lines += [f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}"]
    for row in rows:
        if row.method.endswith(EVIDENCE):
            continue
        found = cells(row)
        line = [f"`{row.method}`", *(found[at] for at in kept[1:])]
        if other is not None:
            line += [_later(exact.get(f"{row.method}, exact numbers")), _later(other.get(row.method))]
        lines.append(f"| {' | '.join([*line, reasons.get(row.method, '')])} |")
    return "\n".join(lines) + "\n"


def _later(row: Row | None) -> str:
    return "-" if row is None or row.method == row.beside else with_half(row.later_s, 1, signed=True)


def put_into(page: Path, text: str) -> None:
    """Put text in place of what a page has between its two marks."""
    before, begin, rest = page.read_text(encoding="utf-8").partition(MARKS[0])
    _, end, after = rest.partition(MARKS[1])
    if not begin or not end:
        raise ValueError(f"{page}: it lacks the marks {MARKS[0]} and {MARKS[1]}")
    page.write_text(f"{before}{begin}\n\n{text}\n{end}{after}", encoding="utf-8")
