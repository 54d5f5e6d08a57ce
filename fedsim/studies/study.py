"""A study is a value: a base scenario, variants of it with names, seeds, and what is compared."""

import hashlib
import itertools
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from types import FunctionType
from typing import Any, Final, Self

import tomli_w

from fedsim.errors import FedsimError, ScenarioError, suggest
from fedsim.inputs.files import read_text
from fedsim.inputs.quantities import lists, several
from fedsim.scenario import Scenario
from fedsim.scenario.toml import parse_toml
from fedsim.studies.metrics import UNITS, metric, needs

Values = Mapping[str, Any]
_MOST_SEEDS: Final = 1_000_000
_FIELDS: Final = ("name", "base", "seeds", "set", "grid", "zip", "variants", "metrics", "baseline", "horizon", "level")


class StudyError(FedsimError):
    """A study cannot be made, read or compared."""


@dataclass(frozen=True)
class Variant:
    """One arm of a study: its name, and what it replaces in the base by dotted path."""

    name: str
    values: Values


@dataclass(frozen=True)
class Point:
    """One run of a study; runs of one seed are a pair, with the same places, fading, devices and data."""

    variant: str
    seed: int
    scenario: Scenario
    digest: str
    learns: bool
    effort: float
    """Participations, about; a measure for the order of runs."""


def _of_arm(name: str, arm: Scenario, seeds: Sequence[int]) -> list[Point]:
    """Return the runs of a variant; no check of a scenario, and nothing in its digest but itself, depends on a seed."""
    told = arm.describe()
    cohort = told["selector"].get("cohort", 10)
    effort = float(arm.rounds.count) * (float(cohort) if isinstance(cohort, int | float) else 10.0)
    learns = told["learning"].get("kind") != "none"
    return [
        Point(name, seed, arm.model_copy(update={"seed": seed}), digest, learns, effort)
        for seed, digest in zip(seeds, arm.digests(seeds), strict=True)
    ]


@dataclass(frozen=True)
class Family:
    """Variants with their seeds, and what of them is compared, as in a `Study`."""

    arms: tuple[str, ...]
    seeds: tuple[int, ...]
    metrics: tuple[str, ...]
    baseline: str
    horizon: Mapping[str, float]
    level: float
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in self.metrics:
            metric(name)
        if self.baseline not in self.arms:
            known = suggest(self.baseline, self.arms)
            raise StudyError(f"baseline: {self.baseline!r} is no variant{known}; allowed: {', '.join(self.arms)}")
        for unit, value in self.horizon.items():
            if unit not in UNITS or not 0 < value < math.inf:
                raise StudyError(f"horizon.{unit}: {value!r} is not allowed; allowed: above 0, of {', '.join(UNITS)}")
        if not 0.5 <= self.level < 1:
            raise StudyError(f"level: {self.level!r} is not allowed; allowed: 0.5 to 0.999, as 0.95")


@dataclass(frozen=True)
class Study:
    """A frozen description of many runs and of their comparison; the same text gives the same runs and digests.

    Metrics, baseline, horizon and level belong to it: all its comparisons are one family for Holm's correction.

    Attributes
    ----------
    name : of the study; ``studies/<name>`` is its folder
    base : what all runs have in common
    variants : the arms
    seeds : of the runs of each arm
    metrics : what is compared, by names of `fedsim.studies.metrics`
    baseline : name of the variant that the others are compared with; the first one by default
    horizon : up to where a target is waited for, by unit: ``{"s": 60}`` seconds, or ``rounds``, ``bits``, ``J``
    level : of the intervals, 0.95 for 95 %

    Examples
    --------
    >>> study = Study.of("scenarios/quickstart.toml", grid={"selector.kind": ["pause", "uniform"]}, seeds=3)
    >>> [variant.name for variant in study.variants], study.seeds, len(study.points)
    (['pause', 'uniform'], (0, 1, 2), 6)
    >>> Study.from_toml(study.to_toml()).digest() == study.digest()
    True
    """

    name: str
    base: Scenario
    variants: tuple[Variant, ...]
    seeds: tuple[int, ...]
    metrics: tuple[str, ...] = ()
    baseline: str = ""
    horizon: Mapping[str, float] = field(default_factory=dict)
    level: float = 0.95

    def __post_init__(self) -> None:
        names = self.arms
        if not names or len(set(names)) < len(names):
            raise StudyError(f"variants: {list(names)} is not allowed; allowed: one at least, each name once")
        whole = all(type(seed) is int and 0 <= seed < 2**63 for seed in self.seeds)
        if not whole or not self.seeds or len(set(self.seeds)) < len(self.seeds):
            raise StudyError(f"seeds: {list(self.seeds)} is not allowed; allowed: whole numbers from 0 on, each once")
        if not self.metrics:
            object.__setattr__(self, "metrics", usual(self.base))
        if not self.baseline:
            object.__setattr__(self, "baseline", names[0])
        family_of(self)
        seen: dict[str, str] = {}
        for point in self.points[: len(names)]:
            self._check_length(point)
            other = seen.setdefault(point.digest, point.variant)
            if other != point.variant:
                raise StudyError(f"variants: {other!r} and {point.variant!r} describe the same runs")

    def _check_length(self, point: Point) -> None:
        until_s = point.scenario.rounds.until_s
        for one, far in needs(self.metrics, self.horizon):
            if one.spends == "s" and until_s is not None and far > until_s:
                raise StudyError(
                    f"variant {point.variant!r}: {one.name} needs runs of {far:g} s, and rounds.until_s ends them at "
                    f"{until_s:g} s; allowed: up to {until_s:g} s, or a later rounds.until_s"
                )

    @classmethod
    def of(
        cls,
        base: Scenario | str | Path,
        *,
        grid: Mapping[str, Sequence[Any]] | None = None,
        zipped: Mapping[str, Sequence[Any]] | None = None,
        variants: Mapping[str, Values] | None = None,
        seeds: int | Sequence[int] = 5,
        name: str | None = None,
        metrics: Sequence[str] = (),
        baseline: str = "",
        horizon: Mapping[str, float] | float | None = None,
        level: float = 0.95,
    ) -> Self:
        """Make a study of a grid, of lists side by side, or of variants with names; every scenario is checked.

        Parameters
        ----------
        base : a scenario, or the path of its TOML file
        grid : dotted path to values; every combination is a variant
        zipped : dotted path to values of one length; each row is a variant, and with a grid each row with each of it
        variants : name to replaced values
        seeds : of each variant; a number counts on from the seed of the base
        name : of the study; that of the base by default
        metrics, baseline, level : see `Study`
        horizon : as in `Study`; a number is meant in seconds

        Returns
        -------
        Study

        Raises
        ------
        StudyError
            If the study is not allowed.
        ScenarioError
            If a variant is no scenario.
        """
        scenario = Scenario.of(base)
        seeds, across, beside = several(seeds), lists(grid), lists(zipped)
        if isinstance(seeds, int) and seeds > _MOST_SEEDS:
            raise StudyError(f"seeds: {seeds} is not allowed; allowed: up to {_MOST_SEEDS:,} seeds")
        many = seeds if isinstance(seeds, Iterable) else (seeds,)
        numbers = range(scenario.seed, scenario.seed + seeds) if isinstance(seeds, int) else many
        found = [Variant(str(key), dict(values)) for key, values in (variants or {}).items()]
        if found and (across or beside):
            raise StudyError("variants: with names, and a grid or lists beside them, are not allowed; allowed: one")
        limits = {"s": float(horizon)} if isinstance(horizon, int | float) else dict(horizon or {})
        arms = tuple(found or _combined(across, beside))
        return cls(name or scenario.name, scenario, arms, tuple(numbers), tuple(metrics), baseline, limits, level)

    @cached_property
    def points(self) -> tuple[Point, ...]:
        """The runs, seed by seed, so that a study that is stopped has whole pairs.

        Raises
        ------
        ScenarioError
            If a variant is no scenario.
        """
        arms = []
        for variant in self.variants:
            if "seed" in variant.values:
                raise StudyError("seed: is no value of a variant; seeds= gives runs that are pairs")
            try:
                arms.append(_of_arm(variant.name, self.base.replace(variant.values), self.seeds))
            except ScenarioError as error:
                raise ScenarioError(f"variant {variant.name!r}: {error}") from None
        return tuple(itertools.chain.from_iterable(zip(*arms, strict=True)))

    @property
    def arms(self) -> tuple[str, ...]:
        """The names of the variants."""
        return tuple(variant.name for variant in self.variants)

    @cached_property
    def paths(self) -> tuple[str, ...]:
        """The dotted paths that variants differ in."""
        return tuple(dict.fromkeys(path for variant in self.variants for path in variant.values))

    def digest(self) -> str:
        """Return the SHA-256 of the runs' digests and of what is compared; names and order are no part of it."""
        family = [sorted(self.metrics), sorted(self.horizon.items()), self.level]
        first = sorted(point.digest for point in self.points if point.variant == self.baseline)
        text = json.dumps([sorted(point.digest for point in self.points), first, family])
        return hashlib.sha256(text.encode()).hexdigest()

    def with_seeds(self, seeds: Sequence[int]) -> "Study":
        """Return the study with other seeds."""
        return replace(self, seeds=tuple(seeds))

    def to_toml(self) -> str:
        """Return the study as TOML text that `from_toml` reads back.

        Raises
        ------
        ScenarioError
            If the base cannot be written as TOML.
        StudyError
            If a value of a variant cannot.
        """
        own = self.base.describe()
        # TOML has no null: what the base lacks too is left out.
        variants = {
            one.name: {p: value for p, value in one.values.items() if value is not None or at(own, p) is not None}
            for one in self.variants
        }
        head = {
            "name": self.name,
            "seeds": list(self.seeds),
            "metrics": list(self.metrics),
            "baseline": self.baseline,
            "level": self.level,
            "horizon": dict(self.horizon),
            "variants": variants,
        }
        base = parse_toml(self.base.to_toml(), "base")
        try:
            return tomli_w.dumps({"study": head, "base": base})
        except TypeError as error:
            raise StudyError(f"variants: a value cannot be written as TOML: {error}") from None

    @classmethod
    def from_toml(cls, text: str, *, source: str = "study", folder: str | Path = "") -> Self:
        """Return the study that TOML text describes.

        Parameters
        ----------
        text : TOML
        source : name of the text in messages
        folder : from which the path of the base is meant

        Raises
        ------
        StudyError
            If the text is no study.
        ScenarioError
            If a variant is no scenario.
        """
        tables = parse_toml(text, source)
        head = tables.get("study", {})
        for name in head:
            if name not in _FIELDS:
                raise StudyError(
                    f"{source}: study.{name} is not known{suggest(name, _FIELDS)}; allowed: {', '.join(_FIELDS)}"
                )
        if ("base" in tables) == ("base" in head):
            raise StudyError(f"{source}: a study needs one base: study.base = 'scenario.toml', or a table [base]")
        if "base" in tables:
            base = Scenario.from_toml(tomli_w.dumps(tables["base"]), source=f"{source}: base", folder=folder)
        else:
            base = Scenario.load(Path(folder) / head["base"])
        if "set" in head:
            base = base.replace(flat(head["set"], parts=True))
        given = {
            name: head[name] for name in ("seeds", "name", "metrics", "baseline", "horizon", "level") if name in head
        }
        grid, zipped = (flat(head.get(key, {}), parts=True) for key in ("grid", "zip"))
        variants = {name: flat(values, parts=True) for name, values in head.get("variants", {}).items()}
        return cls.of(base, grid=grid, zipped=zipped, variants=variants, **given)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Return the study of a TOML file.

        Raises
        ------
        StudyError
            If the file cannot be read, or is no study.
        """
        return cls.from_toml(read_text(path, StudyError), source=str(path), folder=Path(path).parent)


def family_of(study: Study, notes: tuple[str, ...] = ()) -> Family:
    """Return what is compared; notes say what else than values and seeds differs between runs."""
    return Family(study.arms, study.seeds, study.metrics, study.baseline, study.horizon, study.level, notes)


def usual(base: Scenario) -> tuple[str, ...]:
    """Return what is compared where nothing is named."""
    if base.describe()["learning"].get("kind") == "none":
        return ("mean_round_s", "round_s_p95", "delivered_share")
    goal = None if base.rounds.target is None else base.rounds.target.goal
    if goal is not None:
        return (f"time_to_{goal.metric}{'>=' if goal.above else '<='}{goal.value:.12g}", "mean_round_s")
    return (f"time_to_{100 * base.results.target_accuracy:.12g}%", "final_accuracy", "mean_round_s")


def _combined(grid: Mapping[str, Sequence[Any]], zipped: Mapping[str, Sequence[Any]]) -> list[Variant]:
    for path, values in (*grid.items(), *zipped.items()):
        if not isinstance(values, list | tuple) or not values:
            raise StudyError(f"{path}: {values!r} is not allowed; allowed: a list of values")
    lengths = {len(values) for values in zipped.values()}
    if len(lengths) > 1:
        raise StudyError(f"zip: lists of {sorted(lengths)} values are not allowed; allowed: lists of one length")
    if both := set(grid) & set(zipped):
        raise StudyError(
            f"{', '.join(sorted(both))}: is in the grid and in the lists side by side; allowed: one of them"
        )
    beside = [dict(zip(zipped, row, strict=True)) for row in zip(*zipped.values(), strict=True)] if zipped else [{}]
    across = [dict(zip(grid, row, strict=True)) for row in itertools.product(*grid.values())]
    return [Variant(label({**one, **two}), {**one, **two}) for one, two in itertools.product(beside, across)]


def label(values: Values) -> str:
    """Return the name of a variant: its values in few words."""
    words = []
    for path, value in values.items():
        ends = (".".join(path.split(".")[-n:]) for n in range(1, path.count(".") + 2))
        # The shortest end of the path that no other one has.
        short = next((end for end in ends if sum(f".{other}".endswith(f".{end}") for other in values) == 1), path)
        words.append(str(value) if short == "kind" else f"{short}={plain(value)}")
    return ", ".join(words) or "base"


def plain(value: Any) -> Any:
    """Return a value as a cell of a table: text for a part."""
    if isinstance(value, Mapping):
        options = [f"{name}={held}" for name, held in value.items() if name != "kind"]
        return " ".join([str(value.get("kind", "")), *options]).strip()
    if isinstance(value, int | float | str) or value is None:
        return value
    if isinstance(value, type | FunctionType):
        return value.__name__
    if " object at 0x" not in (text := str(value)):
        return text if "\n" not in text else type(value).__name__
    # Without a text of its own: where it lies in memory says nothing.
    held = {name: one for name, one in vars(value).items() if isinstance(one, int | float | str)}
    return plain({"kind": type(value).__name__, **held})


def at(tables: Mapping[str, Any], path: str) -> Any:
    """Return the value at a dotted path of tables; None where there is none."""
    found: Any = tables
    for step in path.split("."):
        found = found.get(step) if isinstance(found, Mapping) else None
    return found


def flat(table: Mapping[str, Any], *, parts: bool = False) -> dict[str, Any]:
    """Return values by dotted path; with ``parts`` a table that has a kind is a value."""
    found: dict[str, Any] = {}
    for name, value in table.items():
        if isinstance(value, Mapping) and value and not (parts and "kind" in value):
            found |= {f"{name}.{inner}": held for inner, held in flat(value, parts=parts).items()}
        else:
            found[name] = value
    return found
