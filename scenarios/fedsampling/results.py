"""FedSampling's Table 1 and Figures 3 to 6: all methods, figures, and tables beside what the paper reports.

    python scenarios/fedsampling/results.py table1 fig3 fig4 fig5 fig6 [--data NAME] [--agnews FILE] [--scale 0.1]
        [--seeds N] [--methods NAME ...] [--set PATH=VALUE ...] [--repeat] [--workers N] [--data-dir DIR] [--thin]

A run of FedSampling with 23,622 clients has a gigabyte of tables; ``--thin`` removes them when its numbers are known.
Of Fig. 3 and one seed centralised training takes half a minute of a processor, a method with 1,000 clients a round
about ten minutes. FILE is the CSV file of AG News, for the texts of table1.
"""

from functools import partial

from agnews import converted
from fedsampling_experiments import EXPERIMENTS, FILE, HERE, LABELS, base_of, values_of
from fedsampling_figures import drawn_figure
from paper_runs.command import in_words, of_runs, publish
from paper_runs.runs import Measured, Table, columns, made, metrics, scaled
from paper_runs.tables import reported
from study_scripts import last_accuracy

from fedsim.history import History
from fedsim.learning import data_folder

PAPER = reported(HERE / "paper.csv", "data", "method")
LAST = 5  # evaluations whose mean is the accuracy at the end
CELLS = {"setting": lambda row: row.method.partition(" ")[0], "label": lambda row: LABELS[row.method.partition(" ")[2]]}


def measure(target: float, history: History) -> Measured:
    """Return the columns of a run, and its curve."""
    rounds, work_s = history.rounds.num_rows, history.column("participations", "compute_s")
    return metrics(FILE["columns"], target, history) | {
        "macro-F1 at the end %": 100.0 * float(history.metric("macro-f1")[-LAST:].mean()),
        "accuracy at the end %": 100.0 * last_accuracy(history, LAST),
        "samples a round": float(work_s.sum() * 1000.0 / rounds),
        "clients that train": float((work_s > 0).sum() / rounds),
        "Mbit up a round": float(history.column("participations", "uplink_bits").sum() / rounds / 1e6),
    }


def main() -> None:
    parser = of_runs(__doc__, "runs/fedsampling", LABELS, data=list(FILE["data"]), thin=False, agnews=None)
    parser.add_argument("experiments", nargs="+", choices=EXPERIMENTS)
    asked, parts = parser.parse_args(), []
    if asked.agnews is not None:
        converted(asked.agnews, data_folder(asked.data_dir))
    for name in asked.experiments:
        one, base = EXPERIMENTS[name], scaled(base_of(name, asked.data, dict(asked.set)), asked.scale)
        target, own = base.results.target_accuracy, [method for method in one.methods if method in asked.methods]
        methods = {f"{of} {method}": values_of(name, method, of, base) for of in one.settings for method in own}
        data = asked.data.replace("here", "mind") if name == "table1" else ""
        shown = columns(FILE["columns"], CELLS, {f"all {method}": PAPER.get((data, method), {}) for method in own})
        figure = {f"{name}-{asked.data}.png": partial(drawn_figure, one, asked.data, target)}
        table = Table(f"{name}-{asked.data}", one.title, base, methods, partial(measure, target), shown, figure)
        parts.append(made(table, asked, thin=asked.thin))
    publish("scenarios/fedsampling/results.py", parts, asked)


if __name__ == "__main__":
    in_words(main)
