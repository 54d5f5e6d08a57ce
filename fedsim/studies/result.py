"""A study that has been run: its runs as histories, tidy tables, comparisons and figures."""

import csv
import io
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from fedsim.errors import RunError
from fedsim.history import History
from fedsim.studies.metrics import Metric, Value, metric, needs
from fedsim.studies.running.records import Done, Records
from fedsim.studies.running.watching import ended_by_time
from fedsim.studies.study import Point, Study, StudyError, at, family_of, plain
from fedsim.whole_files import replace_file

if TYPE_CHECKING:
    from fedsim.history.figures import Figure
    from fedsim.studies.comparing.comparison import Comparison

STUDY: Final = "study.toml"


@dataclass(frozen=True)
class StudyResult:
    """A study that has been run.

    Attributes
    ----------
    study : what was run
    folder : where its runs lie

    Examples
    --------
    >>> from fedsim import Scenario, sweep
    >>> timing = {"learning": {"kind": "none", "model_bits": 1e5, "samples_per_client": 50}, "rounds.count": 5}
    >>> base = Scenario.load("scenarios/quickstart.toml").replace(timing)
    >>> study = sweep(base, {"rounds.policy.deadline_s": [0.6, 1.0]}, seeds=2, out="studies/short", quiet=True)
    >>> len(study), study.failures, study["deadline_s=1.0", 1].seed
    (4, {}, 1)
    >>> study.table("mean_round_s").num_rows
    4
    """

    study: Study
    folder: Path
    _records: Records = field(repr=False, compare=False)
    _values: dict[str, dict[tuple[str, int], Value]] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def load(cls, folder: str | Path) -> "StudyResult":
        """Return the study of a folder.

        Parameters
        ----------
        folder : of a study

        Raises
        ------
        StudyError
            If the folder holds none.
        """
        return cls(Study.load(Path(folder) / STUDY), Path(folder), Records(Path(folder)))

    def __len__(self) -> int:
        return len(self._ended)

    def __iter__(self) -> Iterator[tuple[str, int]]:
        """Yield variant and seed of each run that has ended well."""
        return iter(self._ended)

    def __getitem__(self, key: tuple[str, int]) -> History:
        """Return the history of a run, by variant and seed."""
        if key not in self._ended:
            known = ", ".join(map(str, list(self._ended)[:6]))
            why = self.failures.get(key, "it is no run of the study, or was not made")
            raise StudyError(f"{key}: {why}; allowed: variant and seed, as {known}")
        point, done = self._done[key]
        return self._records.history(point.scenario, done)

    @cached_property
    def _done(self) -> dict[tuple[str, int], tuple[Point, Done]]:
        found = ((point, self._records.done(point.digest)) for point in self.study.points)
        return {(point.variant, point.seed): (point, done) for point, done in found if done is not None}

    @cached_property
    def _ended(self) -> dict[tuple[str, int], Point]:
        return {key: point for key, (point, done) in self._done.items() if not done.error}

    @property
    def failures(self) -> dict[tuple[str, int], str]:
        """Why runs have failed, by variant and seed."""
        return {key: done.error for key, (_, done) in self._done.items() if done.error}

    def watched(self, variant: str, seed: int) -> History:
        """Return the history of a run as far as it was watched, beyond its own last round too.

        Parameters
        ----------
        variant : name
        seed : of the run

        Raises
        ------
        RunError
            If the run cannot be continued, because its first rounds depend on how many there are.
        """
        return self._watched((variant, seed), self[variant, seed])[0]

    def _watched(self, key: tuple[str, int], own: History) -> tuple[History, int]:
        """Return the longest history of a run, and how many rounds it was to have."""
        point, (variant, seed) = self._ended[key], key
        done = self._records.longest(point.digest)
        if done is None or done.rounds is None:
            return own, point.scenario.rounds.count
        far = self._records.history(point.scenario, done)
        same = max(0, own.rounds.num_rows - 1)
        if not far.rounds.slice(0, same).equals(own.rounds.slice(0, same)):
            raise RunError(
                f"{variant}, seed {seed}: its first rounds are others when it has more rounds, so that it cannot go on "
                "to a horizon; allowed: more rounds.count from the beginning"
            )
        return far, done.rounds

    def values(self, name: str) -> dict[tuple[str, int], Value]:
        """Return a metric of each run, by variant and seed; of a target at most the horizon of the study.

        Parameters
        ----------
        name : of the metric
        """
        one = metric(name)
        limit = self.study.horizon.get(one.unit, math.inf) if one.waits else math.inf
        return {key: value.within(limit) for key, value in self._far(name).items()}

    def _far(self, name: str) -> dict[tuple[str, int], Value]:
        """Return a metric of each run, as far as it was watched."""
        if name not in self._values:
            # A run is read once for all metrics of the study.
            names = [name, *(other for other in self.study.metrics if name in self.study.metrics and other != name)]
            self._values.update({other: {} for other in names})
            # Without a horizon or a budget a longer run of an earlier study in this folder says nothing.
            goes_on = bool(needs(names, self.study.horizon))
            for key in self._ended:
                own = self[key]
                far, rounds = self._watched(key, own) if goes_on else (own, self._ended[key].scenario.rounds.count)
                for other in names:
                    self._values[other][key] = self._value(metric(other), key, own, far, rounds)
        return self._values[name]

    def _value(self, one: Metric, key: tuple[str, int], own: History, far: History, rounds: int) -> Value:
        if not one.spends:
            return one.of(own)
        point, found = self._ended[key], one.of(far)
        asked = point.scenario.rounds
        goal = rounds == asked.count and (asked.target_accuracy is not None or asked.target is not None)
        if one.spends == "s" and ended_by_time(point, far):
            # Its last second has come, which the clock shows rounded.
            return replace(found, watched=max(found.watched, asked.until_s or 0.0))
        if far.rounds.num_rows < rounds and not goal and not ended_by_time(point, far):
            # It has ended for good: nothing comes after.
            return replace(found, reached=found.reached or not one.waits, watched=math.inf)
        return found

    def table(self, *metrics: str) -> pa.Table:
        """Return one row for each run and metric, with a column for each path that variants differ in.

        Columns: ``variant``, the paths, ``seed``, ``metric``, ``value``, ``unit``, ``reached`` (false where the value
        is the horizon, or only what the run was watched for), ``watched`` and ``run``, its digest.

        Parameters
        ----------
        *metrics : names; those of the study by default
        """
        rows = []
        for one in map(metric, metrics or self.study.metrics):
            for (variant, seed), value in self.values(one.name).items():
                head = {"variant": variant, **self._swept[variant], "seed": seed, "metric": one.name}
                found = {"value": value.value, "unit": one.unit, "reached": value.reached, "watched": value.watched}
                rows.append({**head, **found, "run": self._ended[variant, seed].digest})
        return pa.Table.from_pylist(rows)

    @cached_property
    def _swept(self) -> dict[str, dict[str, Any]]:
        """The values of the paths that variants differ in, by variant; those of its scenario where it sets none."""
        columns: dict[str, list[Any]] = {}
        points = self.study.points[: len(self.study.arms)]
        arms = [(v.values, p.scenario.describe()) for v, p in zip(self.study.variants, points, strict=True)]
        for path in self.study.paths:
            # Of a table the text is what was set, and not all that it holds by default.
            found = [(at(own, path), given.get(path)) for given, own in arms]
            values = [plain(given if isinstance(own, Mapping) and given is not None else own) for own, given in found]
            kinds = {type(value) for value in values if value is not None}
            columns[path] = values if len(kinds) < 2 or kinds == {int, float} else list(map(str, values))
        return {arm: {path: of[i] for path, of in columns.items()} for i, arm in enumerate(self.study.arms)}

    def compare(self, *metrics: str) -> "Comparison":
        """Return what differs between every variant and the baseline, pair by pair.

        All metrics of the study are one family for Holm's correction, and what is named here beside them counts too.

        Parameters
        ----------
        *metrics : names; those of the study by default
        """
        from fedsim.studies.comparing.comparison import compare, doubts

        notes = doubts((point.variant, done.versions, done.data) for point, done in self._done.values())
        return compare(family_of(self.study, notes), self._far, metrics)

    def plot(
        self, x: str = "time", y: str | None = None, *, smoothing: int | None = None, out: str | Path | None = None
    ) -> "Figure":
        """Return a figure with the mean of each variant and its interval, and the paired differences below.

        Curves end where the first run of their variant ends. Bands are those of each variant by itself: whether two
        differ is seen in the lower panel.

        Parameters
        ----------
        x : ``"time"``, ``"round"``, ``"bits"`` or ``"joules"``
        y : as for `History.plot`; accuracy by default, or the duration of rounds where nothing is learned
        smoothing : window of the causal mean; that of the base by default
        out : file to write
        """
        from fedsim.studies.figures.bands import draw_bands

        study = self.study
        return draw_bands(self.runs, x, y, study.baseline, level=study.level, smoothing=smoothing, out=out)

    @property
    def runs(self) -> dict[str, dict[int, History]]:
        """The histories of the runs that have ended well, by variant and seed."""
        return {name: {seed: self[arm, seed] for arm, seed in self if arm == name} for name in self.study.arms}

    def gather(self, analysis: Callable[[History], pa.Table]) -> pa.Table:
        """Return the tables that an analysis makes of each run as one, with columns for variant and seed.

        Parameters
        ----------
        analysis : as ``lambda run: run.critical_path()``, or ``lambda run: run.lost()``
        """
        parts = []
        for variant, seed in self:
            found = analysis(self[variant, seed])
            found = found.add_column(0, "seed", pa.repeat(seed, found.num_rows))
            parts.append(found.add_column(0, "variant", pa.repeat(variant, found.num_rows)))
        if not parts:
            raise StudyError("gather: no run has ended")
        return pa.concat_tables(parts, promote_options="default").unify_dictionaries()

    def write_index(self) -> Path:
        """Write ``runs.csv``, one row for each run of the study, and return its path."""
        path, names = self.folder / "runs.csv", self.study.metrics
        rows: list[Sequence[Any]] = [["variant", *self.study.paths, "seed", *names, "failure", "digest"]]
        failures = self.failures
        for point in self.study.points:
            key = (point.variant, point.seed)
            values = [self.values(name).get(key, Value(math.nan)) for name in names]
            shown = [str(one.value) if one.reached and not math.isnan(one.value) else "" for one in values]
            swept = self._swept[point.variant].values()
            rows.append([point.variant, *swept, point.seed, *shown, failures.get(key, ""), point.digest])
        text = io.StringIO(newline="")
        csv.writer(text).writerows(rows)
        replace_file(path, lambda part: part.write_bytes(text.getvalue().encode()))
        return path
