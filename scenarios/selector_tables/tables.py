"""The tables: means over seeds, differences to the row beside by pairs, and sentences with their numbers."""

import csv
import math
import tomllib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import numpy as np

from fedsim.studies.comparing.pairs import t_interval
from selector_tables.methods import EVIDENCE, FACTS, HERE, TABLES, crowd, methods
from selector_tables.outcomes import finite_mean

MEANS: Final = (
    *("final_accuracy", "to_target_rounds", "round_s", "asked_s", "compute_s", "uplink_s", "used", "empty", "wasted"),
    *("clients", "jain", "leakage", "noise_to_signal"),
)
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
        mine, its = ({key: np.array([one[key] for one in of]) for key in of[0]} for of in (found, outcomes[beside]))
        row: Row = {"table": table, "method": name, "beside": beside, "verdict": "", "seeds": len(found)}
        row["reached"] = int(np.isfinite(mine["to_target_s"]).sum())
        row["to_target_s"], row["to_target_half"] = _with_half(mine["restricted_s"])
        row["later_s"], row["later_half"] = _with_half(mine["restricted_s"] - its["restricted_s"])
        row["better"], row["better_half"] = _with_half(mine["final_accuracy"] - its["final_accuracy"])
        if name != beside:
            apart = abs(row["later_s"]) > row["later_half"]
            row["verdict"] = "level" if not apart else "loses" if row["later_s"] > 0 else "wins"
        rows.append(row | {key: finite_mean(mine[key]) for key in MEANS})
    return sorted(rows, key=lambda row: float(row["to_target_s"]))


def _with_half(values: np.ndarray) -> tuple[float, float]:
    return float(values.mean()), t_interval(values, 0.95).half


def cells(row: Row) -> list[str]:
    """Return what a row says under `HEADS`."""
    reached = "" if row["reached"] == row["seeds"] else f" ({row['reached']} of {row['seeds']})"
    to_target = _plus_minus(row["to_target_s"], row["to_target_half"]) + reached
    return [to_target, later(row), f"{100 * row['final_accuracy']:.1f} %", f"{row['round_s']:.2f}"]


def later(row: Row) -> str:
    return "-" if row["method"] == row["beside"] else _plus_minus(row["later_s"], row["later_half"], "+")


def _plus_minus(mean: float, half: float, sign: str = "") -> str:
    return f"{mean:{sign}.1f}" if math.isnan(half) else f"{mean:{sign}.1f} +- {half:.1f}"


def reasons() -> dict[str, dict[str, str]]:
    """Return the sentences of each table by row, with places for numbers."""
    sentences = tomllib.loads((HERE / "reasons.toml").read_text(encoding="utf-8"))["sentence"]
    return {
        table: {
            name: one["text"].replace("KIND", methods()[name].kind) for one in sentences for name in one.get(table, ())
        }
        for table in TABLES
    }


def said(rows: Sequence[Row]) -> dict[tuple[str, str], str]:
    """Return the sentences of the rows that there are, by table and method; numbers of other rows are NaN."""
    none = SimpleNamespace(**dict.fromkeys((*MEANS, "later_s"), math.nan))
    facts: dict[str, dict[str, SimpleNamespace]] = {table: defaultdict(lambda: none) for table in TABLES}
    for row in rows:
        facts[row["table"]][row["method"]] = SimpleNamespace(**row | {name: 100 * row[name] for name in PERCENT})
    known, found = reasons(), {}
    for row in rows:
        table, name, of = row["table"], row["method"], facts[row["table"]]
        if name in known[table]:
            told = {"own": of[name], "its": of[row["beside"]], "of": of, "open": facts["open"]}
            found[table, name] = known[table][name].format(**told)
    return found


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
    before, begin, rest = page.read_text(encoding="utf-8").partition(MARKS[0])
    _, end, after = rest.partition(MARKS[1])
    if not begin or not end:
        raise ValueError(f"{page}: it lacks the marks {MARKS[0]} and {MARKS[1]}")
    page.write_text(f"{before}{begin}\n\n{text}\n{end}{after}", encoding="utf-8")


def write_csv(rows: Sequence[Row], file: Path) -> None:
    with file.open("w", encoding="utf-8", newline="") as lines:
        writer = csv.DictWriter(lines, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        for row in rows:
            writer.writerow({key: f"{value:.6g}" if isinstance(value, float) else value for key, value in row.items()})


def unexplained(rows: Sequence[Row]) -> list[str]:
    """Return the rows that lose without a sentence that says why, but for those that are evidence for others."""
    known, lost = reasons(), [row for row in rows if row["verdict"] == "loses" and not row["method"].endswith(EVIDENCE)]
    return [f"{row['table']}: {row['method']}" for row in lost if row["method"] not in known[row["table"]]]
