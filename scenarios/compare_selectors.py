"""Which selectors reach 80 % before uniform selection does, and why do the others not? Three tables of 20 seeds.

    python scenarios/compare_selectors.py [--seeds N] [--tables NAME ...] [--methods NAME ...] [--out FOLDER]

In a table each method has the same crowds with the same random streams, seed by seed, so that its difference from
uniform selection is that of selection. Every selector of the registry has a row. A selector that needs other conditions
(links of one client each, an asynchronous server, batteries) is compared with uniform selection under these.
"""

import argparse
import math
from functools import partial
from pathlib import Path

import numpy as np
from selector_tables.figures import Curves, accuracy_figure, difference_figure
from selector_tables.methods import FACTS, TABLES, crowd, methods, study_of_table
from selector_tables.outcomes import POINTS, held, outcome_of
from selector_tables.tables import HEADS, Row, cells, markdown, put_into, rows_of, unexplained, write_csv
from study_scripts import Runs, run, run_by_seed, table, with_deadline, written

from fedsim import Scenario

EXECUTOR = "selector_tables.executor:Shared"  # steps are recorded once a process for runs of all seeds


def runs_of(name: str, base: Scenario, given: argparse.Namespace) -> Runs:
    """Return the runs of a table in a crowd; with a deadline that a share of it meets, each seed has its own."""
    options = {"executor": EXECUTOR, "store": False, "jobs": given.jobs}
    study, seeds, folder = partial(study_of_table, name, given.methods), range(given.seeds), given.out / name
    share = FACTS["tables"][name].get("met_by")
    if share is None:
        return run(study(base, seeds), folder, **options)
    return run_by_seed(seeds, lambda seed: study(with_deadline(base, share, seed), [seed]), folder, **options)


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

    rows: list[Row] = []
    curves: dict[str, Curves] = {}
    for name in [one for one in TABLES if one in given.tables]:
        base = crowd(name)
        seconds = given.seconds or base.rounds.until_s or math.inf
        base = base.replace({"rounds.until_s": seconds})
        runs = runs_of(name, base, given)
        found = {method: [outcome_of(one, base.crowd.clients, seconds) for one in of] for method, of in runs.items()}
        means = {method: np.mean([held(one, seconds) for one in of], axis=0) for method, of in runs.items()}
        curves[name] = {"time_s": np.linspace(0.0, seconds, POINTS), **means}
        rows += (own := rows_of(name, found))
        table([name, *HEADS], [[row["method"], *cells(row)] for row in own])
    text = markdown(rows)
    (given.out / "tables.md").write_text(text, encoding="utf-8")
    write_csv(rows, given.out / "tables.csv")
    written({"accuracy.png": accuracy_figure(curves, rows), "differences.png": difference_figure(rows)}, given.out)
    if given.page is not None:
        put_into(given.page, text)
    if missing := unexplained(rows):
        print(f"loses without a sentence: {', '.join(missing)}")


if __name__ == "__main__":
    main()
