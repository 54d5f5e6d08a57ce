"""Tables of a paper's figures beside those of fedsim, in Markdown, and the recorded ones beside those of a new run."""

import csv
import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import numpy as np
from scipy import stats

from fedsim.whole_files import replace_file

Table = Sequence[Mapping[str, str]]
_NUMBER: Final = re.compile(r"(-?[\d,.]+(?:e[+-]?\d+)?)(?: \+- ([\d,.]+(?:e[+-]?\d+)?))?")


def markdown(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table; each row has a cell for each head."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def with_deviation(values: Sequence[float], digits: int = 1, unit: str = "") -> str:
    """Return the mean of some values in words, with their standard deviation if there are two or more."""
    finite = [value for value in values if math.isfinite(value)]
    if not finite:
        return "never" if values else "-"
    deviation = f" +- {np.std(finite, ddof=1):.{digits}f}" if len(finite) > 1 else ""
    text = f"{np.mean(finite):.{digits}f}{deviation}{unit}"
    return text if len(finite) == len(values) else f"{text} ({len(finite)} of {len(values)})"


def write(text: str, file: Path) -> None:
    """Write a text in place of a file, as a whole or not at all."""
    file.parent.mkdir(parents=True, exist_ok=True)
    replace_file(file, lambda part: part.write_text(text, encoding="utf-8"))


def tables_of(text: str) -> list[Table]:
    """Return the Markdown tables of a text, each row by its heads."""
    found: list[Table] = []
    for block in re.findall(r"(?:^\|.*\|\n)+", text, re.MULTILINE):
        heads, _, *rows = ([cell.strip() for cell in line.split("|")[1:-1]] for line in block.splitlines())
        found.append([dict(zip(heads, row, strict=False)) for row in rows])
    return found


def reported(file: Path, *keys: str) -> dict[tuple[str, ...], Mapping[str, str]]:
    """Return the rows of a CSV file with a paper's numbers, by some of their columns."""
    with file.open(encoding="utf-8") as rows:
        return {tuple(row[key] for key in keys): row for row in csv.DictReader(rows)}


def recorded(page: str, command: str) -> Table | None:
    """Return the first table behind a command of a page, which may be broken; None if the page has no such command."""
    where = re.search(r"\s+".join(map(re.escape, command.split())) + "`", page)
    return next(iter(tables_of(page[where.end() :])), None) if where else None


def repeated(old: Table, new: Table, seeds: int) -> str:
    """Return recorded values beside new ones, with how far two means of so many seeds may lie apart (95 %, Student)."""
    names = [[row.get("method") for row in table] for table in (old, new)]
    of_method = {row["method"]: row for row in old if "method" in row and names[0].count(row["method"]) == 1}
    rows = []
    for now in (row for row in new if "method" in row and names[1].count(row["method"]) == 1):
        for head, cell in now.items():
            before = of_method.get(now["method"], {}).get(head, "")
            found = [match for match in (_NUMBER.match(before), _NUMBER.match(cell)) if match]
            if head == "method" or len(found) < 2:
                continue
            (one, first), (other, second) = (
                [float(part.replace(",", "")) for part in of.groups("nan")] for of in found
            )
            reach = float(stats.t.ppf(0.975, 2 * seeds - 2)) * math.hypot(first, second) / math.sqrt(seeds)
            within = f"{reach:.2g}, {'within' if abs(one - other) <= reach else 'OUTSIDE'}"
            may = "one seed tells none" if math.isnan(reach) else within
            rows.append([now["method"], head, before, cell, f"{other - one:+.3g}", may])
    heads = ("method", "column", "recorded", "new", "difference", f"tolerance of {seeds} seeds")
    return markdown(heads, rows) if rows else "No row and column of the table are those of the page.\n"
