"""The commands ``fedsim whatif``, ``best`` and ``steady``: other values, the best values, and the long run."""

import math
import time
from pathlib import Path
from typing import Annotated

import typer

from fedsim.cli.options import Assignments, DataDir, each_once, figure_path, one_path, path_option
from fedsim.cli.printing import print_lines, print_notes, print_table
from fedsim.cli.scenarios import Quiet, load_scenario, tell_changed
from fedsim.cli.studies import Jobs, Store
from fedsim.errors import FedsimError


def whatif(
    folder: Annotated[Path, typer.Argument(metavar="RUN", callback=one_path, help="Folder of a finished run.")],
    assignments: Assignments = None,
    sensitivity: Annotated[
        bool, typer.Option("--sensitivity", help="Vary each number of network, devices and policy.")
    ] = False,
    name: Annotated[
        str | None, typer.Option("--metric", metavar="NAME", help="Of --sensitivity (default: time to the target).")
    ] = None,
    factor: Annotated[
        float, typer.Option("--factor", help="Of --sensitivity: each number over it, and times it.")
    ] = 1.25,
    method: Annotated[
        str, typer.Option("--method", help="Of --sensitivity: one-at-a-time; morris or sobol with SALib.")
    ] = "one-at-a-time",
    rows: Annotated[int, typer.Option("--rows", min=2, help="Trajectories of morris, or samples of sobol.")] = 8,
    plot: Annotated[Path | None, path_option("--plot", "File of a tornado figure.", figure_path)] = None,
    jobs: Jobs = None,
    store: Store = None,
    data_dir: DataDir = None,
    out: Annotated[Path | None, path_option("--out", "Folder of the runs made.")] = None,
    quiet: Quiet = False,
) -> None:
    """Run the scenario of a finished run with other values, and say what it changes."""
    from fedsim.results import read_run
    from fedsim.scenario import Scenario, parse_assignment

    history = read_run(folder)
    if isinstance(history.scenario, Scenario):
        tell_changed(folder, history.scenario.files())
    values = each_once(map(parse_assignment, assignments or ()))
    if not sensitivity:
        from fedsim.studies.questions.whatif import what_if

        found = what_if(history, values, store=store, data_dir=data_dir)
        print_lines(found.sentences)
        print_notes(*(note for note in found.after.notes if note not in history.notes))
        return
    from fedsim.studies.figures.bars import draw_tornado
    from fedsim.studies.metrics import metric
    from fedsim.studies.questions.sensitivity import sensitivity as ranked
    from fedsim.studies.running.engine import Engine
    from fedsim.studies.study import usual

    scenario = Scenario.of(history.scenario.describe()).replace(values)
    wanted = usual(scenario)[0] if history.evaluations.num_rows else "simulated_s"
    engine = Engine(jobs=jobs, store=store, data_dir=data_dir)
    place = out or Path(f"{folder}-sensitivity")
    ranks = ranked(scenario, place, engine, name=name or wanted, factor=factor, method=method, rows=rows, quiet=quiet)
    lines = [
        (row["field"], f"{row['value']:.4g}", *map(_change, (row["low"], row["high"], row["effect"])))
        for row in ranks.table.to_pylist()
    ]
    head = {"morris": ("- conf.", "+ conf.", "mu*"), "sobol": ("- conf.", "+ conf.", "total index")}
    columns = head.get(method, (f"over {factor:g}", f"times {factor:g}", "effect"))
    print_table(f"{ranks.metric}: {ranks.base:.4g}; change of it", lines, ("field", "value", *columns))
    for path, why in ranks.refused.items():
        print_notes(f"{path} is not varied: {why}")
    if plot is not None:
        rows_ = ranks.table.to_pylist()
        low, high = ([row[end] if row[end] is not None else math.nan for row in rows_] for end in ("low", "high"))
        names = [row["field"] + " (not always reached)" * (None in (row["low"], row["high"])) for row in rows_]
        draw_tornado(names, low, high, f"change of {metric(ranks.metric).label}", plot)
        typer.echo(str(plot))


def best(
    file: Annotated[Path, typer.Argument(metavar="FILE", callback=one_path, help="A scenario in TOML.")],
    over: Annotated[list[str], typer.Option("--over", metavar="A.B=LOW..HIGH", help="A field: a range, or values.")],
    goals: Annotated[str, typer.Option("--for", metavar="METRIC[,METRIC]", help="What is to be best.")],
    assignments: Assignments = None,
    trials: Annotated[int, typer.Option("--trials", min=1, help="Values that are tried.")] = 20,
    seeds: Annotated[int, typer.Option("--seeds", min=1, max=1_000_000, help="Runs of each.")] = 3,
    plot: Annotated[Path | None, path_option("--plot", "File of a Pareto figure.", figure_path)] = None,
    jobs: Jobs = None,
    store: Store = None,
    data_dir: DataDir = None,
    out: Annotated[Path | None, path_option("--out", "Folder (default: studies/NAME-best).")] = None,
    quiet: Quiet = False,
) -> None:
    """Search for the values that do best, by optuna where it is installed and by SciPy else."""
    from fedsim.cli.studies import _values
    from fedsim.studies.figures.bars import draw_points
    from fedsim.studies.metrics import metric
    from fedsim.studies.questions.best import Over, Trial, best as search
    from fedsim.studies.running.engine import Engine
    from fedsim.units import counted

    scenario = load_scenario(file, assignments, plugins=True)
    fields = []
    for text in over:
        path, _, values = text.partition("=")
        fields.append(Over.of(scenario, path.strip(), values if ".." in values else _values(text, "--over")[1]))
    # time-to-80%,joules as on paper
    short = {"joules": "energy_j"}
    metrics = [short.get(one.strip(), one.strip().replace("-to-", "_to_")) for one in goals.split(",")]
    if plot is not None and len(metrics) != 2:
        raise FedsimError(f"--plot: --for {', '.join(metrics)} is not allowed; a Pareto figure needs two metrics")

    def tell(trial: Trial) -> None:
        if not quiet:
            typer.echo(f"{_shown(trial)}", err=True)

    def _shown(trial: Trial) -> str:
        values = ", ".join(f"{path} = {_plain(value)}" for path, value in trial.values.items())
        means = [
            f"{name} {'not reached' if math.isinf(m) else f'{m:.4g}'}"
            for name, m in zip(metrics, trial.means, strict=True)
        ]
        return f"{values}: {', '.join(means)}"

    place = out or Path("studies") / f"{scenario.name}-best"
    tried, front = search(
        scenario,
        fields,
        metrics,
        place,
        Engine(jobs=jobs, store=store, data_dir=data_dir),
        trials=trials,
        seeds=seeds,
        tell=tell,
    )
    if not front:
        raise FedsimError(f"best: none of {len(tried)} trials reaches {', '.join(metrics)}")
    print_notes(*dict.fromkeys(note for trial in front for note in trial.notes))
    for trial in front:
        typer.echo(f"best of {len(tried)}, mean of {counted(seeds, 'seed')}: {_shown(trial)}")
    if plot is not None:
        reached = [trial.means for trial in tried if all(map(math.isfinite, trial.means))]
        draw_points(reached, [trial.means for trial in front], [*map(metric, metrics)], plot)
        typer.echo(str(plot))


def steady(
    place: Annotated[Path, typer.Argument(metavar="FILE_OR_RUN", callback=one_path, help="A scenario, or a run.")],
    assignments: Assignments = None,
    rounds: Annotated[int, typer.Option("--rounds", min=1, help="Of the run that is made of a scenario.")] = 10_000,
    shares: Annotated[
        list[float] | None, typer.Option("--quantile", help="As 0.95; may be repeated (default: 0.5, 0.95, 0.99).")
    ] = None,
    level: Annotated[float, typer.Option("--level", help="Of the intervals.")] = 0.95,
) -> None:
    """Say how long a round takes in the long run: mean and quantiles, without the warm-up, each with its interval."""
    from fedsim import simulate
    from fedsim.results import read_run
    from fedsim.studies.questions.steady import steady as in_the_long_run

    if any(not 0 < share < 1 for share in shares or ()):
        raise FedsimError(f"--quantile: {shares} is not allowed; allowed: numbers between 0 and 1")
    begun_s, took = time.process_time(), ""
    if place.is_dir():
        if assignments:
            raise FedsimError(f"{place}: a finished run has its values; allowed: a scenario with --set")
        history = read_run(place)
    else:
        history = simulate(load_scenario(place, [*(assignments or ()), f"rounds.count={rounds}"], plugins=True))
        cpu_s = time.process_time() - begun_s
        took = f"{rounds:,} rounds took {cpu_s:.3g} s of processor, {60 * rounds / cpu_s:,.0f} a minute."
    print_lines([*in_the_long_run(history, shares or (0.5, 0.95, 0.99), level).sentences, *([took] if took else [])])


def _change(value: float | None) -> str:
    return "not reached" if value is None or math.isinf(value) else f"{value:+.3g}"


def _plain(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
