"""The tables: means over seeds, differences to the row beside by pairs, and sentences with their numbers."""

import csv
import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Final

import numpy as np

from fedsim.studies.comparing.pairs import t_interval
from selector_tables.methods import EVIDENCE, FACTS, HERE, crowd, methods
from selector_tables.outcomes import Outcome

Outcomes = Mapping[str, Mapping[int, Outcome]]
"""Outcomes of one table: by method, then by seed."""
MEANS: Final = (
    *("final_accuracy", "to_target_rounds", "round_s", "asked_s", "compute_s", "uplink_s", "used", "empty", "wasted"),
    *("clients", "jain", "leakage", "noise_to_signal"),
)
MARKS: Final = ("<!-- tables -->", "<!-- end of tables -->")
"""Lines of a page between which the tables stand."""
HEADS: Final = ("to 80 % s", "later s", "accuracy", "round s")
Ends = tuple[float, float]
"""A mean with the half width of its 95 % interval, NaN with fewer than two numbers."""


@dataclass(frozen=True)
class Row:
    method: str
    beside: str
    seeds: int
    reached: int
    to_target_s: Ends  # the length of the run where it was not reached
    later_s: Ends
    better: Ends
    means: dict[str, float]

    @property
    def verdict(self) -> str:
        """What the paired difference in seconds says; nothing of the row that others are compared with."""
        mean, half = self.later_s
        return "" if self.method == self.beside else "loses" if mean > half else "wins" if -mean > half else "level"

    def cells(self) -> list[str]:
        reached = "" if self.reached == self.seeds else f" ({self.reached} of {self.seeds})"
        accuracy, round_s = f"{100 * self.means['final_accuracy']:.1f} %", f"{self.means['round_s']:.2f}"
        return [with_half(self.to_target_s) + reached, self.later(), accuracy, round_s]

    def later(self) -> str:
        return "-" if self.method == self.beside else with_half(self.later_s, "+")


def rows_of(outcomes: Outcomes) -> list[Row]:
    """Return the rows of one table, the soonest first; a row whose pair is not there has no differences."""
    return sorted((_row(name, outcomes) for name in outcomes), key=lambda row: row.to_target_s[0])


def _row(name: str, outcomes: Outcomes) -> Row:
    mine, beside = outcomes[name], methods()[name].beside
    pairs = [(one, outcomes[beside][seed]) for seed, one in mine.items() if seed in outcomes.get(beside, {})]
    later, better = ([one[of] - its[of] for one, its in pairs] for of in ("restricted_s", "final_accuracy"))
    finite = {figure: [one[figure] for one in mine.values() if math.isfinite(one[figure])] for figure in MEANS}
    means = {figure: float(np.mean(values)) if values else math.nan for figure, values in finite.items()}
    reached = sum(math.isfinite(one["to_target_s"]) for one in mine.values())
    ends = (_ends(of) for of in ([one["restricted_s"] for one in mine.values()], later, better))
    return Row(name, beside, len(mine), reached, *ends, means)


def _ends(values: Sequence[float]) -> Ends:
    return (float(np.mean(values)) if values else math.nan), t_interval(np.array(values, dtype=float), 0.95).half


def with_half(ends: Ends, sign: str = "") -> str:
    mean = f"{ends[0]:{sign}.1f}"
    return mean if math.isnan(ends[1]) else f"{mean} +- {ends[1]:.1f}"


def reasons() -> dict[str, dict[str, str]]:
    """Return the sentences of each table by row, with places for numbers."""
    found: dict[str, dict[str, str]] = {table: {} for table in FACTS["tables"]}
    for one in tomllib.loads((HERE / "reasons.toml").read_text(encoding="utf-8"))["sentence"]:
        for table, of in found.items():
            of |= {row: one["text"].replace("KIND", methods()[row].kind) for row in one.get(table, ())}
    return found


class Facts(dict[str, SimpleNamespace]):
    """The figures of rows by method, as sentences name them; those of a row that is not there are NaN."""

    def __init__(self, rows: Sequence[Row]) -> None:
        percent = ("final_accuracy", "empty", "wasted", "clients")
        scaled = {
            row.method: {name: row.means[name] * (100 if name in percent else 1) for name in MEANS} for row in rows
        }
        super().__init__({row.method: SimpleNamespace(**scaled[row.method], later=row.later_s[0]) for row in rows})

    def __missing__(self, method: str) -> SimpleNamespace:
        return SimpleNamespace(**dict.fromkeys((*MEANS, "later"), math.nan))


def said(rows: Mapping[str, Sequence[Row]]) -> dict[str, dict[str, str]]:
    """Return the sentences of the rows that there are, with their numbers."""
    facts, known = {table: Facts(of) for table, of in rows.items()}, reasons()
    other = facts.get("open", Facts([]))
    return {
        table: {
            row.method: known[table][row.method].format(own=own[row.method], its=own[row.beside], of=own, open=other)
            for row in rows[table]
            if row.method in known[table]
        }
        for table, own in facts.items()
    }


def markdown(rows: Mapping[str, Sequence[Row]]) -> str:
    """Return one table for a page, a line for each method, without the rows that sentences name as evidence."""
    found, sentences = {table: {row.method: row for row in of} for table, of in rows.items()}, said(rows)
    order = dict.fromkeys(row.method for of in rows.values() for row in of if not row.method.endswith(EVIDENCE))
    exact = ["privacy, exact numbers: later s"] if "privacy" in rows else []
    heads = [head for table in rows for head in (f"{table}: {HEADS[0]}", *HEADS[1:])]
    heads = ["selector", *heads, *exact, "why it loses, or what to know"]
    lines = [f"- *{t}*: {FACTS['tables'][t]['about']}; {crowd(t, 0).rounds.until_s:.0f} s." for t in rows]
    lines += ["", f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}"]
    for name in order:
        cells = [cell for of in found.values() for cell in (of[name].cells() if name in of else ["-"] * len(HEADS))]
        if exact:
            row = found["privacy"].get(f"{name}, exact numbers")
            cells.append("-" if row is None else row.later())
        why = " ".join(f"*{table}:* {of[name]}" for table, of in sentences.items() if name in of)
        lines.append(f"| {' | '.join([f'`{name}`', *cells, why])} |")
    return "\n".join(lines) + "\n"


def put_into(page: Path, text: str) -> None:
    """Put text in place of what a page has between its two marks."""
    before, begin, rest = page.read_text(encoding="utf-8").partition(MARKS[0])
    _, end, after = rest.partition(MARKS[1])
    if not begin or not end:
        raise ValueError(f"{page}: it lacks the marks {MARKS[0]} and {MARKS[1]}")
    page.write_text(f"{before}{begin}\n\n{text}\n{end}{after}", encoding="utf-8")


def write_csv(rows: Mapping[str, Sequence[Row]], file: Path) -> None:
    with file.open("w", encoding="utf-8", newline="") as lines:
        writer = csv.writer(lines, lineterminator="\n")
        heads = ("to_target_s", "to_target_half", "later_s", "later_half", "better", "better_half")
        writer.writerow(["table", "method", "beside", "verdict", "seeds", "reached", *heads, *MEANS])
        for table, found in rows.items():
            for row in found:
                values = (*row.to_target_s, *row.later_s, *row.better, *(row.means[name] for name in MEANS))
                numbers = [f"{value:.6g}" for value in values]
                writer.writerow([table, row.method, row.beside, row.verdict, row.seeds, row.reached, *numbers])


def unexplained(rows: Mapping[str, Sequence[Row]]) -> list[str]:
    """Return the rows that lose without a sentence that says why, but for those that are evidence for others."""
    known = reasons()
    lost = [(table, row.method) for table, found in rows.items() for row in found if row.verdict == "loses"]
    return [f"{table}: {name}" for table, name in lost if not name.endswith(EVIDENCE) and name not in known[table]]
