"""The page of the tables: a line of Markdown for each method, a sentence where it loses, and its place in a page."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Final

from selector_tables.crowds import CROWDS
from selector_tables.methods import EVIDENCE
from selector_tables.reasons import REASONS
from selector_tables.tables import MEANS, Row, with_half

MARKS: Final = ("<!-- tables -->", "<!-- end of tables -->")
"""Lines of a page between which the tables stand."""
COLUMNS: Final = ("to 80 % s", "later s", "accuracy", "round s")
EXACT: Final = "privacy, exact numbers: later s"


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


def markdown(rows: Mapping[str, Sequence[Row]], reasons: Mapping[str, Mapping[str, str]]) -> str:
    """Return one table for a page, a line for each method, without the rows that sentences name as evidence."""
    found = {table: {row.method: row for row in of} for table, of in rows.items()}
    order = dict.fromkeys(row.method for of in rows.values() for row in of if not row.method.endswith(EVIDENCE))
    heads = ["selector", *(head for table in rows for head in (f"{table}: {COLUMNS[0]}", *COLUMNS[1:]))]
    heads += [*([EXACT] if "privacy" in rows else []), "why it loses, or what to know"]
    lines = [f"- *{table}*: {CROWDS[table].about}; {CROWDS[table].seconds:.0f} s." for table in rows]
    lines += ["", f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}"]
    for method in order:
        line = [f"`{method}`"]
        for of in found.values():
            line += _figures(of.get(method))
        if "privacy" in rows:
            line.append(_later(found["privacy"].get(f"{method}, exact numbers")))
        said = [f"*{table}:* {of[method]}" for table, of in reasons.items() if method in of]
        lines.append(f"| {' | '.join([*line, ' '.join(said)])} |")
    return "\n".join(lines) + "\n"


def _figures(row: Row | None) -> list[str]:
    if row is None:
        return ["-"] * len(COLUMNS)
    reached = "" if row.reached == row.seeds else f" ({row.reached} of {row.seeds})"
    return [
        with_half(row.to_target_s, 1) + reached,
        _later(row),
        f"{100 * row.means['final_accuracy']:.1f} %",
        f"{row.means['round_s']:.2f}",
    ]


def _later(row: Row | None) -> str:
    return "-" if row is None or row.method == row.beside else with_half(row.later_s, 1, signed=True)


def put_into(page: Path, text: str) -> None:
    """Put text in place of what a page has between its two marks."""
    before, begin, rest = page.read_text(encoding="utf-8").partition(MARKS[0])
    _, end, after = rest.partition(MARKS[1])
    if not begin or not end:
        raise ValueError(f"{page}: it lacks the marks {MARKS[0]} and {MARKS[1]}")
    page.write_text(f"{before}{begin}\n\n{text}\n{end}{after}", encoding="utf-8")
