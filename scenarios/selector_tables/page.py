"""The tables of a page between its marks."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from paper_runs.tables import markdown

from selector_tables.methods import EVIDENCE, FACTS, crowd
from selector_tables.rows import HEADS, Row, cells, later
from selector_tables.sentences import said

MARKS: Final = ("<!-- tables -->", "<!-- end of tables -->")
"""Lines of a page between which the tables stand."""


def page_of(rows: Sequence[Row]) -> str:
    """Return one table for a page, a line for each method, without the rows that sentences name as evidence."""
    found, sentences = {(row["table"], row["method"]): row for row in rows}, said(rows)
    tables = list(dict.fromkeys(row["table"] for row in rows))
    exact = ["privacy, exact numbers: later s"] if "privacy" in tables else []
    heads = [head for table in tables for head in (f"{table}: {HEADS[0]}", *HEADS[1:])]
    heads = ["selector", *heads, *exact, "why it loses, or what to know"]
    about = [f"- *{t}*: {FACTS['tables'][t]['about']}; {crowd(t).rounds.until_s:.0f} s.\n" for t in tables]
    lines = []
    for name in dict.fromkeys(row["method"] for row in rows if not row["method"].endswith(EVIDENCE)):
        line = [f"`{name}`"]
        for table in tables:
            line += cells(found[table, name]) if (table, name) in found else ["-"] * len(HEADS)
        if exact:
            row = found.get(("privacy", f"{name}, exact numbers"))
            line.append("-" if row is None else later(row))
        why = " ".join(f"*{table}:* {sentences[table, name]}" for table in tables if (table, name) in sentences)
        lines.append([*line, why])
    return "".join([*about, "\n", markdown(heads, lines)])


def put_into(page: Path, text: str) -> None:
    """Put text in place of what a page has between its two marks."""
    begin, end = MARKS
    put, found = re.subn(f"{begin}.*{end}", lambda _: f"{begin}\n\n{text}\n{end}", page.read_text("utf-8"), flags=re.S)
    if not found:
        raise ValueError(f"{page}: it lacks the marks {begin} and {end}")
    page.write_text(put, encoding="utf-8")
