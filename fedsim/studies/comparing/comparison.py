"""A comparison of the variants of a study: lines, sentences, and the files that papers take."""

import csv
import io
import json
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa

from fedsim.studies.comparing.lines import COLUMNS, Line, sentence
from fedsim.studies.comparing.pairs import Paired, Sample, holm, paired
from fedsim.studies.metrics import Metric, Value, metric
from fedsim.studies.study import Family, StudyError
from fedsim.whole_files import make_folder, replace_file

Values = Mapping[tuple[str, int], Value]


@dataclass(frozen=True)
class Comparison:
    """Every variant against the baseline, pair by pair; ``family`` comparisons are counted by Holm's correction.

    ``notes`` say what else than values and seeds differs between the runs.
    """

    lines: tuple[Line, ...]
    level: float
    family: int
    notes: tuple[str, ...] = ()

    @property
    def table(self) -> pa.Table:
        rows = [one.row() for one in self.lines]
        known = [{name: None if v in (math.inf, -math.inf) or v != v else v for name, v in row.items()} for row in rows]  # noqa: PLR0124
        return pa.Table.from_pylist(known)

    def __str__(self) -> str:
        return "\n".join([*(sentence(one, self.level, self.family) for one in self.lines), *self.notes])

    __repr__ = __str__

    def to_csv(self) -> str:
        rows, text = self.table.to_pylist(), io.StringIO()
        writer = csv.DictWriter(text, list(self.lines[0].row()) if self.lines else [], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        return text.getvalue()

    def to_json(self) -> str:
        """Return level, size of the family, and the table's rows, as JSON."""
        said = [sentence(one, self.level, self.family) for one in self.lines]
        rows = [{**row, "sentence": text} for row, text in zip(self.table.to_pylist(), said, strict=True)]
        head = {"level": self.level, "family": self.family, "notes": self.notes}
        return json.dumps({**head, "comparisons": rows}, indent=1)

    def to_latex(self) -> str:
        rows = [COLUMNS, *(one.cells() for one in self.lines)]
        head, *body = [" & ".join(map(_latex, row)) + " \\\\" for row in rows]
        form = "ll" + "r" * (len(COLUMNS) - 2)
        lines = [f"\\begin{{tabular}}{{{form}}}", r"\hline", head, r"\hline", *body, r"\hline", "\\end{tabular}\n"]
        return "\n".join(lines)

    def write(self, path: str | Path) -> None:
        """Write the comparison to a file, whose ending is its form: csv, json, tex or txt."""
        forms = {".csv": self.to_csv, ".json": self.to_json, ".tex": self.to_latex, ".txt": self.__str__}
        file = Path(path)
        if file.suffix not in forms:
            raise StudyError(f"{file}: is not allowed; a comparison is written as {', '.join(forms)}")
        text = f"{forms[file.suffix]().rstrip()}\n"
        make_folder(file.parent)
        replace_file(file, lambda part: part.write_text(text, encoding="utf-8"))


def compare(family: Family, values_of: Callable[[str], Values], names: Sequence[str] = ()) -> Comparison:
    """Compare all arms with the baseline; the family's metrics and those named here are corrected together."""
    metrics = tuple(dict.fromkeys([*family.metrics, *names]))
    others = [name for name in family.arms if name != family.baseline]
    if not others:
        raise StudyError(f"compare: there is one variant, {family.baseline!r}; allowed: two or more")
    lines = [_line(family, metric(name), other, values_of(name)) for name in metrics for other in others]
    corrected = holm([line.paired.p for line in lines])
    lines = [replace(line, holm=p) for line, p in zip(lines, corrected, strict=True)]
    shown = tuple(line for line in lines if not names or line.metric in names)
    return Comparison(shown, family.level, len(lines), family.notes)


def doubts(runs: Iterable[tuple[str, Mapping[str, str], str | None]]) -> tuple[str, ...]:
    """Return what else than values and seeds differs between runs of variants: versions, and data of one variant."""
    made, data = defaultdict[str, set[str]](set), defaultdict[str, list[str]](list)
    for variant, versions, content in runs:
        for package, version in versions.items():
            made[package].add(version)
        if content:
            data[variant].append(content)
    several = {package: " and ".join(sorted(found)) for package, found in made.items() if len(found) > 1}
    said = [f"Not all runs were made with one version: {package} {found}." for package, found in several.items()]
    # Data that are drawn have another content for each seed.
    other = [variant for variant, found in data.items() if 1 < len(set(found)) < len(found)]
    return (*said, *(f"Not all runs of {variant!r} had the same data." for variant in other))


def _line(family: Family, one: Metric, variant: str, values: Values) -> Line:
    def refused(why: str) -> Line:
        return Line(one.name, variant, family.baseline, Paired(len(seeds), (0, 0), math.nan, refused=why))

    seeds = [seed for seed in family.seeds if (variant, seed) in values and (family.baseline, seed) in values]
    if not seeds:
        return refused("the two have no seed in common that has ended")
    sides = [[values[arm, seed] for seed in seeds] for arm in (family.baseline, variant)]
    sample = Sample(
        np.array([[one.value for one in side] for side in sides]),
        np.array([[one.reached for one in side] for side in sides]),
        np.array([[one.watched for one in side] for side in sides]),
    )
    every = [max(one.every for one in side) for side in sides]
    if every[0] != every[1]:
        why = f"models were evaluated every {every[0]} rounds and every {every[1]}: set one results.evaluate_every"
        return refused(why)
    found = paired(sample, family.level, family.horizon.get(one.unit) if one.waits else None, one.unit)
    if not one.waits and (short := sum(found.unreached)):
        before = f"ended before {one.budget:g} {one.spends}, the first at {sample.watched.min():.4g}"
        return refused(f"{short} runs {before if one.budget else 'do not get there'}")
    return Line(one.name, variant, family.baseline, found)


_LATEX: Final = str.maketrans(
    {sign: f"\\{sign}" for sign in "&%_#${}"}
    | {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "\n": " "}
    | {sign: f"${sign}$" for sign in "<>|"}
)


def _latex(text: str) -> str:
    return text.translate(_LATEX).replace("+-", r"$\pm$")
