"""The rows of the tables: means, in which runs without the target count whole, and differences in pairs by seed."""

import csv
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fedsim.studies.comparing.pairs import t_interval
from selector_tables.methods import methods
from selector_tables.outcomes import finite_mean

HEADS = ("to 80 % s", "later s", "accuracy", "round s")
Row = dict[str, Any]
"""A line of ``tables.csv`` by column; half widths are those of 95 % intervals, NaN with fewer than two seeds."""


def rows_of(table: str, outcomes: Mapping[str, Sequence[Mapping[str, float]]]) -> list[Row]:
    """Return the rows of a table from outcomes by method, seed by seed; the soonest first."""
    rows = []
    for name, found in outcomes.items():
        beside = methods()[name].beside
        own, its = ({key: np.array([one[key] for one in of]) for key in of[0]} for of in (found, outcomes[beside]))
        reached_s, own_s = own.pop("to_target_s"), own.pop("restricted_s")
        later_s = own_s - its["restricted_s"]
        row: Row = {"table": table, "method": name, "beside": beside, "verdict": "", "seeds": len(found)}
        row["reached"] = int(np.isfinite(reached_s).sum())
        for key, seconds in (("to_target", own_s), ("later", later_s)):
            row |= {f"{key}_s": float(seconds.mean()), f"{key}_half": t_interval(seconds, 0.95).half}
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


def write_csv(rows: Sequence[Row], file: Path) -> None:
    with file.open("w", encoding="utf-8", newline="") as lines:
        writer = csv.DictWriter(lines, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        for row in rows:
            writer.writerow({key: f"{value:.6g}" if isinstance(value, float) else value for key, value in row.items()})
