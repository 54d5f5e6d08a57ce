"""Which selectors reach 80 % before uniform selection does, and why do the others not? Three tables of 20 seeds.

    python scenarios/compare_selectors.py [--seeds N] [--tables NAME ...] [--methods NAME ...] [--out FOLDER]

In a table each method has the same crowds with the same random streams, seed by seed, so that its difference from
uniform selection is that of selection. Every selector of the registry has a row. A selector that needs other conditions
(links of one client each, an asynchronous server, batteries) is compared with uniform selection under these.
"""

import argparse
from pathlib import Path

import numpy as np
from selector_tables.figures import accuracy_figure, difference_figure
from selector_tables.methods import TABLES, crowd, methods, studies_of
from selector_tables.outcomes import held, outcome_of
from selector_tables.tables import HEADS, markdown, put_into, rows_of, unexplained, write_csv
from study_scripts import run, table, written

EXECUTOR = "selector_tables.executor:shared"  # steps are recorded once a process for runs of all seeds


def main() -> None:
    parser = argparse.ArgumentParser(description="Every selector against uniform selection.")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--tables", nargs="+", choices=TABLES, default=list(TABLES), metavar="NAME")
    parser.add_argument("--methods", nargs="+", choices=methods(), default=None, metavar="NAME")
    parser.add_argument("--seconds", type=float, default=None, help="of simulated time, in place of each crowd's own")
    parser.add_argument("--jobs", type=int, default=None)
    parser.add_argument("--out", type=Path, default=Path("runs/compare_selectors"))
    parser.add_argument("--page", type=Path, default=None, help="page into which the tables are put, between its marks")
    given = parser.parse_args()

    rows, curves, seconds = {}, {}, {}
    for name in given.tables:
        clients, seconds[name] = (base := crowd(name, 0, given.seconds)).crowd.clients, base.rounds.until_s or 0.0
        found: dict[str, dict[int, dict[str, float]]] = {}
        sums: dict[str, list[np.ndarray]] = {}
        for study in studies_of(name, given.methods, range(given.seeds), given.seconds):
            folder = given.out / name / "-".join(map(str, study.seeds[:1]))
            for method, of in run(study, folder, executor=EXECUTOR, store=False, jobs=given.jobs).items():
                for seed, history in zip(study.seeds, of, strict=True):
                    found.setdefault(method, {})[seed] = outcome_of(history, clients, seconds[name])
                    sums.setdefault(method, []).append(held(history, seconds[name]))
        rows[name], curves[name] = rows_of(found), {method: np.mean(of, axis=0) for method, of in sums.items()}
        table([name, *HEADS], [[row.method, *row.cells()] for row in rows[name]])
    (given.out / "tables.md").write_text(markdown(rows), encoding="utf-8")
    write_csv(rows, given.out / "tables.csv")
    figures = {"accuracy.png": accuracy_figure(curves, seconds, rows), "differences.png": difference_figure(rows)}
    written(figures, given.out)
    if given.page is not None:
        put_into(given.page, (given.out / "tables.md").read_text(encoding="utf-8"))
    if missing := unexplained(rows):
        print(f"loses without a sentence: {', '.join(missing)}")


if __name__ == "__main__":
    main()
