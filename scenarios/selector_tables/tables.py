"""The tables: means over seeds, and differences to the row beside, paired by seed, with 95 % intervals."""

import csv
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
from scipy import stats

from selector_tables.methods import EVIDENCE, methods
from selector_tables.outcomes import Outcome
from selector_tables.reasons import REASONS
from selector_tables.runs import Done

CONFIDENCE: Final = 0.95
Runs = Mapping[str, Mapping[int, Outcome]]
"""Outcomes of one table: by method, then by seed."""


class Interval(NamedTuple):
    """A mean with the half width of its interval, NaN with fewer than two numbers."""

    mean: float
    half: float

    @classmethod
    def of(cls, values: Sequence[float]) -> "Interval":
        """Return mean and 95 % interval of independent numbers, by Student's t."""
        numbers = np.asarray(values, dtype=np.float64)
        if numbers.size < 2:
            return cls(float(numbers.mean()) if numbers.size else math.nan, math.nan)
        error = float(stats.sem(numbers))
        return cls(float(numbers.mean()), error * float(stats.t.ppf(0.5 + CONFIDENCE / 2, numbers.size - 1)))

    @property
    def above(self) -> bool:
        return self.mean - self.half > 0

    @property
    def below(self) -> bool:
        return self.mean + self.half < 0


@dataclass(frozen=True)
class Row:
    method: str
    beside: str  # the row that it is compared with, paired by seed
    seeds: int
    reached: int
    to_target_s: Interval  # the length of the run where it was not reached
    later_s: Interval
    better: Interval
    means: dict[str, float]

    @property
    def verdict(self) -> str:
        """What the paired difference in seconds says; nothing of the row that others are compared with."""
        if self.method == self.beside:
            return ""
        return "loses" if self.later_s.above else "wins" if self.later_s.below else "level"


MEANS: Final = (
    *("final_accuracy", "to_target_rounds", "round_s", "asked_s", "compute_s", "uplink_s", "used", "empty", "wasted"),
    *("clients", "jain", "leakage", "noise_to_signal"),
)


def by_table(done: Sequence[Done]) -> dict[str, dict[str, dict[int, Outcome]]]:
    """Return outcomes by table, method and seed."""
    found: dict[str, dict[str, dict[int, Outcome]]] = {}
    for task, outcome, _ in done:
        found.setdefault(task.table, {}).setdefault(task.method, {})[task.seed] = outcome
    return found


def rows_of(runs: Runs) -> list[Row]:
    """Return the rows of one table, the soonest first; a row whose pair is not there has no differences."""
    return sorted((_row(name, runs) for name in runs), key=lambda row: row.to_target_s.mean)


def _row(name: str, runs: Runs) -> Row:
    mine, beside = runs[name], methods()[name].beside
    other = runs.get(beside, {})
    seeds = sorted(mine)
    pairs = [(mine[seed], other[seed]) for seed in seeds if seed in other]
    means = {}
    for figure in MEANS:
        values = np.array([getattr(mine[seed], figure) for seed in seeds])
        means[figure] = float(values[np.isfinite(values)].mean()) if np.isfinite(values).any() else math.nan
    return Row(
        name,
        beside,
        len(seeds),
        sum(math.isfinite(mine[seed].to_target_s) for seed in seeds),
        Interval.of([mine[seed].restricted_s for seed in seeds]),
        Interval.of([one.restricted_s - its.restricted_s for one, its in pairs]),
        Interval.of([one.final_accuracy - its.final_accuracy for one, its in pairs]),
        means,
    )


HEADS: Final = (
    *("selector", "to 80 % s", "later than uniform s", "reached", "final accuracy", "rounds to 80 %", "round s"),
    *(
        "questions s",
        "work s",
        "uplink s",
        "used a round",
        "empty",
        "wasted",
        "clients used",
        "Jain",
        "leakage",
        "noise / signal",
    ),
)


def cells(row: Row) -> list[str]:
    mean = row.means
    none = row.method == row.beside
    return [
        row.method,
        with_half(row.to_target_s, 1),
        "-" if none else with_half(row.later_s, 1, signed=True),
        f"{row.reached} of {row.seeds}",
        f"{100 * mean['final_accuracy']:.1f} %",
        f"{mean['to_target_rounds']:.0f}" if math.isfinite(mean["to_target_rounds"]) else "-",
        f"{mean['round_s']:.2f}",
        f"{mean['asked_s']:.2f}",
        f"{mean['compute_s']:.2f}",
        f"{mean['uplink_s']:.3f}",
        f"{mean['used']:.1f}",
        f"{100 * mean['empty']:.0f} %",
        f"{100 * mean['wasted']:.0f} %",
        f"{100 * mean['clients']:.0f} %",
        f"{mean['jain']:.2f}",
        f"{mean['leakage']:.0f}" if mean["leakage"] else "-",
        f"{mean['noise_to_signal']:.1f}" if math.isfinite(mean["noise_to_signal"]) else "-",
    ]


def with_half(interval: Interval, digits: int, *, signed: bool = False) -> str:
    mean = f"{interval.mean:+.{digits}f}" if signed else f"{interval.mean:.{digits}f}"
    return mean if math.isnan(interval.half) else f"{mean} +- {interval.half:.{digits}f}"


def plain(rows: Sequence[Row]) -> str:
    """Return a table of one line for each row, for a terminal."""
    lines = [list(HEADS), *(cells(row) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(HEADS))]
    return "\n".join("  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)) for line in lines)


def write_csv(rows: Mapping[str, Sequence[Row]], file: Path) -> None:
    with file.open("w", encoding="utf-8", newline="") as lines:
        writer = csv.writer(lines, lineterminator="\n")
        heads = ("to_target_s", "to_target_half", "later_s", "later_half", "better", "better_half")
        writer.writerow(["table", "method", "beside", "verdict", "seeds", "reached", *heads, *MEANS])
        for table, found in rows.items():
            for row in found:
                intervals = [*row.to_target_s, *row.later_s, *row.better]
                numbers = [f"{value:.6g}" for value in (*intervals, *(row.means[name] for name in MEANS))]
                writer.writerow([table, row.method, row.beside, row.verdict, row.seeds, row.reached, *numbers])


def unexplained(rows: Mapping[str, Sequence[Row]]) -> list[str]:
    """Return the rows that lose without a sentence that says why, but for those that are evidence for others."""
    return [
        f"{table}: {row.method}"
        for table, found in rows.items()
        for row in found
        if row.verdict == "loses" and not row.method.endswith(EVIDENCE) and not REASONS.get(table, {}).get(row.method)
    ]
