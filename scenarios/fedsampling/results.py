"""FedSampling's Table 1 and Figures 3 to 6: all methods, figures, and tables beside what the paper reports.

    python scenarios/fedsampling/results.py table1 fig3 fig4 fig5 fig6 [--data NAME] [--agnews FILE] [--scale 0.1]
        [--seeds N] [--methods NAME ...] [--set PATH=VALUE ...] [--workers N] [--data-dir DIR] [--out FOLDER]

runs what has not ended so far (each run has a folder, and goes on after a kill), draws a figure for each experiment,
writes ``table.md`` and prints it. ``--scale 0.1`` runs the first tenth of the rounds.
"""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

sys.path.insert(0, str(Path(__file__).parents[1]))

from agnews import converted
from fedsampling_experiments import DATA, EXPERIMENTS, LABELS, PAPER, Experiment, runs_of
from paper_runs.command import changes, options, publish, run_asked
from paper_runs.curves import Panel, draw
from paper_runs.runs import Ended
from paper_runs.tables import markdown, with_deviation

from fedsim.history import History, save
from fedsim.learning import data_folder

LAST = 5
"""Evaluations whose mean is the accuracy at the end."""
Found = Mapping[str, Mapping[str, Sequence[tuple[Ended, History]]]]
"""Runs that have ended, by setting and method."""
HEADS = (
    *("setting", "method", "macro-F1 at the end %", "paper %", "accuracy at the end %", "paper %"),
    *(
        "rounds to the target",
        "samples a round",
        "clients that train",
        "simulated s a round",
        "Mbit up a round",
        "seeds",
        "wall s",
    ),
)


def last_accuracy(history: History) -> float:
    """Return the mean accuracy of the last evaluations in per cent."""
    return 100.0 * float(history.column("evaluations", "accuracy")[-LAST:].mean())


def last_f1(history: History) -> float:
    """Return the mean macro-F1 of the last evaluations in per cent."""
    return 100.0 * float(history.metric("macro-f1")[-LAST:].mean())


def row_of(
    setting: str, method: str, runs: Sequence[tuple[Ended, History]], paper: Mapping[str, tuple[float, ...]]
) -> list[str]:
    """Return the row of a method; a cell is a mean over seeds, with a standard deviation."""
    histories = [history for _, history in runs]
    target = float(runs[0][0].run.scenario.results.target_accuracy)
    rounds = [one.column("rounds", "round").size for one in histories]
    work = [
        float((one.column("participations", "compute_s") > 0).sum()) / count
        for one, count in zip(histories, rounds, strict=True)
    ]
    sent = [
        float(one.column("participations", "uplink_bits").sum()) / count / 1e6
        for one, count in zip(histories, rounds, strict=True)
    ]
    trained = [
        float(one.column("participations", "compute_s").sum()) * 1000.0 / count
        for one, count in zip(histories, rounds, strict=True)
    ]
    return [
        setting,
        LABELS[method],
        with_deviation([last_f1(one) for one in histories], 2),
        f"{paper[method][0]:.2f}" if method in paper else "-",
        with_deviation([last_accuracy(one) for one in histories], 2),
        f"{paper[method][1]:.2f}" if method in paper else "-",
        with_deviation([_rounds_to(one, target) for one in histories], 0),
        with_deviation(trained, 0),
        with_deviation(work, 0),
        with_deviation([float(one.column("rounds", "duration_s").mean()) for one in histories], 2),
        with_deviation(sent, 1),
        str(len(runs)),
        f"{sum(ended.wall_s for ended, _ in runs):.0f}",
    ]


def _rounds_to(history: History, target: float) -> float:
    reached = np.flatnonzero(history.column("evaluations", "accuracy") >= target)
    return float(history.column("evaluations", "round")[reached[0]]) if reached.size else np.inf


def figure_of(experiment: Experiment, found: Found) -> Figure:
    """Return the figure of an experiment, with one standard deviation over the seeds."""
    if experiment.drawn == "curves":
        (runs,) = found.values()
        curves = {LABELS[method]: [history for _, history in of] for method, of in runs.items()}
        return draw(curves, Panel("round", "accuracy", 1, ("round", "accuracy"), title=experiment.title))
    figure = Figure(figsize=(6.4, 4.2), dpi=120, layout="constrained")
    axes = figure.add_subplot()
    if experiment.drawn == "bars":
        (runs,) = found.values()
        means = {LABELS[method]: [last_accuracy(history) for _, history in of] for method, of in runs.items()}
        axes.bar(
            list(means), [np.mean(one) for one in means.values()], yerr=[_deviation(one) for one in means.values()]
        )
        axes.tick_params("x", rotation=60)
        lowest = min(min(one) for one in means.values())
        axes.set_ylim(max(0.0, lowest - 5.0), None)
    else:
        for name, points in lines_of(found).items():
            at = sorted(points)
            axes.errorbar(
                at,
                [np.mean(points[x]) for x in at],
                [_deviation(points[x]) for x in at],
                marker="o",
                capsize=3,
                label=name,
            )
        axes.set_xlabel(experiment.axis)
        axes.legend(fontsize=8, frameon=False)
    axes.set_ylabel("accuracy at the end (%)")
    axes.set_title(experiment.title, fontsize=10)
    axes.grid(visible=True, alpha=0.3)
    return figure


def lines_of(found: Found) -> dict[str, dict[float, list[float]]]:
    """Return the last accuracies by line and abscissa; a setting is the abscissa, or that and the line's own name."""
    lines: dict[str, dict[float, list[float]]] = {}
    for setting, runs in found.items():
        at, _, line = setting.partition("-")
        for method, of in runs.items():
            name = f"{line[0].upper()} = {line[1:]}" if line else LABELS[method]
            lines.setdefault(name, {})[float(at)] = [last_accuracy(history) for _, history in of]
    return lines


def _deviation(values: Sequence[float]) -> float:
    return float(np.std(values, ddof=1)) if len(values) > 1 else 0.0


def report(name: str, data: str, ended: Sequence[Ended], folder: Path) -> str:
    """Draw the figure of an experiment and return its part of the page."""
    experiment, prefix = EXPERIMENTS[name], f"{name}-{data}-"
    found: dict[str, dict[str, list[tuple[Ended, History]]]] = {}
    for one in ended:
        if not one.skipped:
            of_setting = found.setdefault(one.run.experiment.removeprefix(prefix), {})
            of_setting.setdefault(one.run.method, []).append((one, one.history()))
    lines = [f"### {experiment.title}\n"]
    lines += sorted({f"Skipped (`fedsim data` tells more): {one.skipped}\n" for one in ended if one.skipped})
    if found:
        paper = PAPER.get(data, {}) if name == "table1" else {}
        rows = [row_of(setting, method, of, paper) for setting, runs in found.items() for method, of in runs.items()]
        lines += [f"{ended[0].run.scenario.rounds.count} rounds.\n", markdown(HEADS, rows)]
        file = folder / f"{name}-{data}.png"
        save(figure_of(experiment, found), file)
        print(file)
    return "\n".join(lines)


def main() -> None:
    """Run the experiments that are asked for, and write tables and figures."""
    parser = options("FedSampling, Table 1 and Figures 3 to 6.", "runs/fedsampling", list(LABELS))
    parser.set_defaults(executor="merged")  # most clients do one step, on one sample
    parser.add_argument("experiments", nargs="+", choices=EXPERIMENTS, metavar="EXPERIMENT")
    parser.add_argument("--data", choices=DATA, default="here", help="other data than those of the experiment's file")
    parser.add_argument("--agnews", type=Path, default=None, help="CSV file of AG News, for the texts of table1")
    arguments = parser.parse_args()
    if arguments.agnews is not None:
        converted(arguments.agnews, data_folder(arguments.data_dir))
    values, parts = changes(arguments), []
    for name in arguments.experiments:
        runs = runs_of(name, tuple(arguments.methods), arguments.seeds, arguments.data, arguments.scale, values)
        ended = run_asked(runs, arguments)
        parts.append(report(name, arguments.data, ended, arguments.out))
    publish("scenarios/fedsampling/results.py", parts, arguments.out)


if __name__ == "__main__":
    main()
