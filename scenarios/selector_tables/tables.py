"""The tables: means over seeds, differences to the row beside by pairs, and sentences with their numbers."""

import csv
import math
import re
import tomllib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import numpy as np

from fedsim.studies.comparing.pairs import t_interval
from selector_tables.methods import EVIDENCE, FACTS, HERE, TABLES, crowd, methods
from selector_tables.outcomes import finite_mean

LEVEL: Final = 0.95
PERCENT: Final = ("final_accuracy", "empty", "wasted", "clients")
"""Shares, from 0 to 1 in a row and in per cent in a sentence."""
MARKS: Final = ("<!-- tables -->", "<!-- end of tables -->")
"""Lines of a page between which the tables stand."""
HEADS: Final = ("to 80 % s", "later s", "accuracy", "round s")
Row = dict[str, Any]
"""A line of ``tables.csv`` by column; half widths are those of 95 % intervals, NaN with fewer than two seeds."""


def rows_of(table: str, outcomes: Mapping[str, Sequence[Mapping[str, float]]]) -> list[Row]:
    """Return the rows of a table from outcomes by method, seed by seed; the soonest first.

    A run that does not reach the target counts with its whole length.
    """
    rows = []
    for name, found in outcomes.items():
        beside = methods()[name].beside
        own, its = ({key: np.array([one[key] for one in of]) for key in of[0]} for of in (found, outcomes[beside]))
        reached_s, own_s = own.pop("to_target_s"), own.pop("restricted_s")
        later_s = own_s - its["restricted_s"]
        row: Row = {"table": table, "method": name, "beside": beside, "verdict": "", "seeds": len(found)}
        row["reached"] = int(np.isfinite(reached_s).sum())
        for key, seconds in (("to_target", own_s), ("later", later_s)):
            row |= {f"{key}_s": float(seconds.mean()), f"{key}_half": t_interval(seconds, LEVEL).half}
        if name != beside:
            apart = abs(row["later_s"]) > row["later_half"]
            row["verdict"] = "level" if not apart else "loses" if row["later_s"] > 0 else "wins"
        rows.append(row | {key: finite_mean(values) for key, values in own.items()})
    return sorted(rows, key=lambda row: float(row["to_target_s"]))


def cells(row: Row) -> list[str]:
    """Return what a row says under `HEADS`."""
    reached = "" if row["reached"] == row["seeds"] else f" ({row['reached']} of {row['seeds']})"
    to_target = _plus_minus(row["to_target_s"], row["to_target_half"]) + reached
    return [to_target, later(row), f"{100 * row['final_accuracy']:.1f} %", f"{row['round_s']:.2f}"]


def later(row: Row) -> str:
    return "-" if row["method"] == row["beside"] else _plus_minus(row["later_s"], row["later_half"], "+")


def _plus_minus(mean: float, half: float, sign: str = "") -> str:
    return f"{mean:{sign}.1f}" if math.isnan(half) else f"{mean:{sign}.1f} +- {half:.1f}"


@cache
def reasons() -> dict[tuple[str, str], str]:
    """Return the sentences by table and method, with places for numbers."""
    sentences = tomllib.loads((HERE / "reasons.toml").read_text(encoding="utf-8"))["sentence"]
    found = [(table, name, one["text"]) for one in sentences for table in TABLES for name in one.get(table, ())]
    return {(table, name): text.replace("KIND", methods()[name].kind) for table, name, text in found}


def said(rows: Sequence[Row]) -> dict[tuple[str, str], str]:
    """Return the sentences of the rows that there are, by table and method; numbers of other rows are NaN."""
    none = SimpleNamespace(**dict.fromkeys(rows[0], math.nan))
    facts: dict[str, dict[str, SimpleNamespace]] = {table: defaultdict(lambda: none) for table in TABLES}
    for row in rows:
        facts[row["table"]][row["method"]] = SimpleNamespace(**row | {name: 100 * row[name] for name in PERCENT})
    found = {}
    for row in rows:
        of, key = facts[row["table"]], (row["table"], row["method"])
        if key in reasons():
            own, its = of[row["method"]], of[row["beside"]]
            found[key] = reasons()[key].format(own=own, its=its, of=of, open=facts["open"])
    return found


def unexplained(rows: Sequence[Row]) -> list[str]:
    """Return the rows that lose without a sentence that says why, but for those that are evidence for others."""
    lost = [(row["table"], row["method"]) for row in rows if row["verdict"] == "loses"]
    return [": ".join(key) for key in lost if not key[1].endswith(EVIDENCE) and key not in reasons()]


def markdown(rows: Sequence[Row]) -> str:
    """Return one table for a page, a line for each method, without the rows that sentences name as evidence."""
    found, sentences = {(row["table"], row["method"]): row for row in rows}, said(rows)
    tables = list(dict.fromkeys(row["table"] for row in rows))
    exact = ["privacy, exact numbers: later s"] if "privacy" in tables else []
    heads = [head for table in tables for head in (f"{table}: {HEADS[0]}", *HEADS[1:])]
    heads = ["selector", *heads, *exact, "why it loses, or what to know"]
    lines = [f"- *{t}*: {FACTS['tables'][t]['about']}; {crowd(t).rounds.until_s:.0f} s." for t in tables]
    lines += ["", f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}"]
    for name in dict.fromkeys(row["method"] for row in rows if not row["method"].endswith(EVIDENCE)):
        line = [f"`{name}`"]
        for table in tables:
            line += cells(found[table, name]) if (table, name) in found else ["-"] * len(HEADS)
        if exact:
            row = found.get(("privacy", f"{name}, exact numbers"))
            line.append("-" if row is None else later(row))
        why = " ".join(f"*{table}:* {sentences[table, name]}" for table in tables if (table, name) in sentences)
        lines.append(f"| {' | '.join([*line, why])} |")
    return "\n".join(lines) + "\n"


def put_into(page: Path, text: str) -> None:
    """Put text in place of what a page has between its two marks."""
    begin, end = MARKS
    put, found = re.subn(f"{begin}.*{end}", lambda _: f"{begin}\n\n{text}\n{end}", page.read_text("utf-8"), flags=re.S)
    if not found:
        raise ValueError(f"{page}: it lacks the marks {begin} and {end}")
    page.write_text(put, encoding="utf-8")


def write_csv(rows: Sequence[Row], file: Path) -> None:
    with file.open("w", encoding="utf-8", newline="") as lines:
        writer = csv.DictWriter(lines, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        for row in rows:
            writer.writerow({key: f"{value:.6g}" if isinstance(value, float) else value for key, value in row.items()})
