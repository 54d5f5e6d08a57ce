"""The commands ``fedsim sweep`` and ``fedsim compare``: many runs, and paired differences between them."""

import math
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fedsim.cli.options import Assignments, DataDir, each_once, each_path, figure_path, one_path, path_option
from fedsim.cli.printing import print_lines, print_notes, print_table
from fedsim.cli.scenarios import Quiet, load_scenario
from fedsim.errors import FedsimError

if TYPE_CHECKING:
    from fedsim.studies.comparing.comparison import Comparison
    from fedsim.studies.result import StudyResult
    from fedsim.studies.study import Study

Metrics = Annotated[
    list[str] | None,
    typer.Option("--metric", metavar="NAME", help="time_to_80%, accuracy@30s, mean_round_s, ...; may be repeated."),
]
Horizon = Annotated[
    list[str] | None,
    typer.Option("--horizon", metavar="S", help="Seconds up to which targets are waited for, or rounds=N, bits=N."),
]
Baseline = Annotated[str, typer.Option("--baseline", help="Variant that others are compared with (default: first).")]
_LEVEL = 0.95
Level = Annotated[float | None, typer.Option("--level", help=f"Of the intervals (default: {_LEVEL}).")]
Jobs = Annotated[int | None, typer.Option("--jobs", "-j", min=1, help="Runs at a time (default: cores).")]
Store = Annotated[Path | None, path_option("--store", "Folder of the store that all runs share.")]
To = Annotated[Path | None, path_option("--to", "File of the comparison: .csv, .json, .tex or .txt.")]


def sweep(
    file: Annotated[Path, typer.Argument(metavar="FILE", callback=one_path, help="A scenario or a study in TOML.")],
    grid: Annotated[
        list[str] | None, typer.Option("--grid", metavar="A.B=X,Y", help="Values of a path; each with each other.")
    ] = None,
    zipped: Annotated[
        list[str] | None, typer.Option("--zip", metavar="A.B=X,Y", help="Values of a path; the first ones together.")
    ] = None,
    assignments: Assignments = None,
    seeds: Annotated[str | None, typer.Option("--seeds", help="How many, or which: 10, or 3,5,8 (default: 5).")] = None,
    metrics: Metrics = None,
    horizon: Horizon = None,
    baseline: Baseline = "",
    level: Level = None,
    name: Annotated[str | None, typer.Option("--name", help="Of the study (default: the scenario's).")] = None,
    jobs: Jobs = None,
    out: Annotated[Path | None, path_option("--out", "Folder (default: studies/NAME).")] = None,
    store: Store = None,
    no_store: Annotated[bool, typer.Option("--no-store", help="Look nothing up and keep nothing.")] = False,
    data_dir: DataDir = None,
    executor: Annotated[str | None, typer.Option("--executor", help="What computes trainings.")] = None,
    on: Annotated[str, typer.Option("--on", help="processes, ray or ray:ADDRESS.")] = "processes",
    until: Annotated[
        str | None, typer.Option("--until", help="Seeds until it is enough: 'time_to_80% within 5%'.")
    ] = None,
    most: Annotated[int, typer.Option("--most", help="Seeds at most, with --until.")] = 200,
    plan: Annotated[bool, typer.Option("--plan", help="Say what would be run, in which time and memory.")] = False,
    plot: Annotated[Path | None, path_option("--plot", "File of a figure.", figure_path)] = None,
    quiet: Quiet = False,
) -> None:
    """Run variants of a scenario with several seeds side by side, and compare them pair by pair.

    What the folder has is not run again: a study that was stopped goes on.
    """
    from fedsim.studies.running.engine import Engine
    from fedsim.studies.study import Study
    from fedsim.studies.sweeping import run_study

    if _is_study(file):
        if any((grid, zipped, assignments, metrics, horizon, baseline, seeds, name)) or level is not None:
            raise FedsimError(f"{file}: a study says itself what is run and compared; allowed: a change of the file")
        study = Study.load(file)
    else:
        study = Study.of(
            load_scenario(file, assignments, plugins=True),
            grid=each_once(map(_values, grid or ())),
            zipped=each_once(_values(one, "--zip") for one in zipped or ()),
            seeds=_seeds(seeds or "5"),
            name=name,
            metrics=metrics or (),
            baseline=baseline,
            horizon=each_once(map(_limit, horizon or ())),
            level=_LEVEL if level is None else level,
        )
    engine = Engine(on, jobs, False if no_store else store, data_dir, executor)
    folder = out or Path("studies") / study.name
    if plan:
        from fedsim.studies.running.plan import plan_of

        print_lines(plan_of(study, folder, engine))
        return
    if until is None:
        result = run_study(study, folder, engine, quiet=quiet)
    else:
        from fedsim.studies.questions.enough import Enough, run_until

        result, said = run_until(study, folder, engine, Enough.of(until), most, quiet=quiet)
        typer.echo(said)
    _finish(study, result, plot, quiet=quiet)


def _finish(study: "Study", result: "StudyResult", plot: Path | None, *, quiet: bool) -> None:
    """Print what came of a study; end with code 2 if runs have failed."""
    for (variant, seed), why in result.failures.items():
        print_notes(f"{variant}, seed {seed}: {why}")
    if plot is not None:
        result.plot(out=plot)
        typer.echo(str(plot))
    if not quiet and len(result):
        _print_said(result)
        _print_medians(result)
        if len(study.arms) > 1 and len(study.seeds) > 1:
            _print(result.compare(), f"{study.name}: against {study.baseline!r}")
        typer.echo(str(result.folder))
    if result.failures:
        raise typer.Exit(2)


def _print_said(result: "StudyResult") -> None:
    """Print what is said of the runs of the first seed, by the first variant of which it is said."""
    said: dict[str, str] = {}
    for arm, seed in result:
        for note in result[arm, seed].notes if seed == result.study.seeds[0] else ():
            said.setdefault(note, arm)
    print_notes(*(f"{arm}: {note}" for note, arm in said.items()))


def _print_medians(result: "StudyResult") -> None:
    """Print a row for each variant: medians over the seeds, "never" where half of the runs or more do not get there."""
    import numpy as np

    from fedsim.units import counted

    names, rows = result.study.metrics, []
    found, seeds = [result.values(name) for name in names], len(result.study.seeds)
    for arm in result.study.arms:
        of = [[v.value if v.reached else math.inf for (one, _), v in values.items() if one == arm] for values in found]
        middles = [float(np.median(one)) if one else math.nan for one in of]
        ended = f"{arm} ({len(of[0])} of {seeds})" if len(of[0]) < seeds else arm
        rows.append((ended, *("-" if math.isnan(m) else "never" if math.isinf(m) else f"{m:.3g}" for m in middles)))
    print_table(f"{result.study.name}: medians of {counted(seeds, 'seed')}", rows, ("variant", *names))


def compare(
    runs: Annotated[
        list[Path], typer.Argument(metavar="RUNS_OR_STUDY...", callback=each_path, help="A study, or run folders.")
    ],
    metrics: Metrics = None,
    horizon: Horizon = None,
    baseline: Baseline = "",
    level: Level = None,
    to: To = None,
    plot: Annotated[
        Path | None, path_option("--plot", "File of a figure, with --why of stacked bars.", figure_path)
    ] = None,
    x: Annotated[str, typer.Option("--x", help="Of the figure: time, round, bits or joules.")] = "time",
    why: Annotated[bool, typer.Option("--why", help="Say which factor makes the difference in seconds.")] = False,
) -> None:
    """Compare variants pair by pair: runs of one seed are a pair, runs that differ in their seed alone a variant."""
    from fedsim.studies.comparing.why import why as why_of
    from fedsim.studies.figures.bands import draw_bands
    from fedsim.studies.figures.bars import draw_why
    from fedsim.studies.folders import compared as compared_folders
    from fedsim.studies.result import STUDY, StudyResult

    if len(runs) == 1 and (runs[0] / STUDY).exists():
        if horizon or baseline or level is not None:
            raise FedsimError("compare: baseline, horizon and level are the study's own; allowed: --metric")
        result = StudyResult.load(runs[0])
        if not len(result):
            reason = "no run has ended well, or files and parts that runs read have changed since"
            raise FedsimError(f"{runs[0]}: has no run of its study: {reason}; allowed: fedsim sweep {runs[0] / STUDY}")
        first, level = result.study.baseline, result.study.level
        arms, compared = result.runs, result.compare(*metrics or ())
    else:
        limits, level = each_once(map(_limit, horizon or ())), _LEVEL if level is None else level
        arms, compared = compared_folders(runs, metrics or (), baseline, limits, level)
        first = baseline or next(iter(arms))
    _print(compared, f"against {first!r}", to)
    parted = why_of(arms, first, level) if why else []
    print_lines(one.sentence for one in parted)
    if plot is not None and why and not any(one.pairs for one in parted):
        raise FedsimError(f"{plot}: is not drawn, as no difference is known")
    if plot is not None:
        draw_why(parted, plot) if why else draw_bands(arms, x, None, first, level=level, out=plot)


def _print(comparison: "Comparison", title: str, to: Path | None = None) -> None:
    from fedsim.studies.comparing.lines import COLUMNS

    if to is not None:
        comparison.write(to)
    typer.echo(title)
    for name in dict.fromkeys(line.metric for line in comparison.lines):
        rows = [line.cells() for line in comparison.lines if line.metric == name]
        known = [i for i in range(1, len(COLUMNS)) if any(row[i] != "-" for row in rows)]
        print_table(rows[0][0], [tuple(row[i] for i in known) for row in rows], tuple(COLUMNS[i] for i in known))
    print_lines(str(comparison).splitlines())


def _is_study(file: Path) -> bool:
    try:
        return "study" in tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False  # as a scenario it is refused in words


def _values(text: str, option: str = "--grid") -> tuple[str, list[Any]]:
    """Return path and values of ``a.b=x,y``; commas within brackets, braces and quotes part nothing."""
    from fedsim.scenario import parse_assignment

    path, equals, rest = text.partition("=")
    if not equals or not path.strip():
        raise FedsimError(f"{option} {text}: is not of the form path.to.field=value,value")
    return path.strip(), [parse_assignment(f"{path}={one}")[1] for one in _parted(rest)]


def _parted(text: str) -> list[str]:
    parts, depth, quote = [""], 0, ""
    for sign in text:
        if quote:
            quote = "" if sign == quote else quote
        elif sign in "\"'":
            quote = sign
        else:
            depth += (sign in "[{") - (sign in "]}")
        if sign == "," and not depth and not quote:
            parts.append("")
        else:
            parts[-1] += sign
    return parts


def _seeds(text: str) -> int | Sequence[int]:
    try:
        numbers = [int(one) for one in text.split(",")]
    except ValueError:
        raise FedsimError(f"--seeds {text!r} is not allowed; allowed: a number of seeds, or a list as 3,5,8") from None
    return numbers[0] if len(numbers) == 1 else numbers


def _limit(text: str) -> tuple[str, float]:
    unit, equals, value = text.rpartition("=")
    try:
        return (unit if equals else "s"), float(value)
    except ValueError:
        raise FedsimError(
            f"--horizon {text!r} is not allowed; allowed: 60 (seconds), rounds=200, bits=1e9, J=50"
        ) from None
