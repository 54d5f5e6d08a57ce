"""Which selectors reach 80 % before uniform selection does, and why do the others not? Three tables of 20 seeds.

    python scenarios/compare_selectors.py [--seeds N] [--table NAME ...] [--method NAME ...] [--out FOLDER]

takes 21 min, and puts them on a page between its marks if asked (``--page FILE``). In a table each method has the same
crowds with the same random streams, seed by seed, so that its difference from uniform selection is that of selection.
Every selector of the registry has a row. A selector that needs other conditions (links of one client each, an
asynchronous server, batteries) is compared with uniform selection under these.
"""

import math
from pathlib import Path
from typing import Annotated

import numpy as np
from click import Choice
from selector_tables.figures import accuracy_figure, difference_figure
from selector_tables.methods import TABLES, crowd, methods
from selector_tables.outcomes import POINTS, held, outcome_of
from selector_tables.page import page_of, put_into
from selector_tables.rows import HEADS, Row, cells, rows_of, write_csv
from selector_tables.runs import runs_of
from selector_tables.sentences import unexplained
from study_scripts import command, table, written
from typer import Option


def main(
    seeds: int = 20,
    tables: Annotated[list[str] | None, Option("--table", click_type=Choice(TABLES))] = None,
    names: Annotated[list[str] | None, Option("--method", click_type=Choice(list(methods())))] = None,
    seconds: Annotated[float | None, Option(help="Simulated, in place of each crowd's own.")] = None,
    page: Annotated[Path | None, Option(help="Gets the tables between its marks.")] = None,
    out: Path = Path("runs/compare_selectors"),
) -> None:
    rows: list[Row] = []
    curves, asked = {}, [known for known in methods() if not names or known in names]
    for name in (known for known in TABLES if not tables or known in tables):
        base = crowd(name)
        until_s = seconds or base.rounds.until_s or math.inf
        base = base.replace({"rounds.until_s": until_s})
        runs = runs_of(name, asked, base, range(seeds), out / name)
        found = {method: [outcome_of(one, base.crowd.clients, until_s) for one in of] for method, of in runs.items()}
        means = {method: np.mean([held(one, until_s) for one in of], axis=0) for method, of in runs.items()}
        curves[name] = {"time_s": np.linspace(0.0, until_s, POINTS), **means}
        rows += (own := rows_of(name, found))
        table([name, *HEADS], [[row["method"], *cells(row)] for row in own])
    write_csv(rows, out / "tables.csv")
    written({"accuracy.png": accuracy_figure(curves, rows), "differences.png": difference_figure(rows)}, out)
    if page is not None:
        put_into(page, page_of(rows))
    if missing := unexplained(rows):
        print(f"loses without a sentence: {', '.join(missing)}")


if __name__ == "__main__":
    command(main, __doc__)
