"""Which selectors reach 80 % before uniform selection does, and why do the others not? Three tables of 20 seeds.

    python scenarios/compare_selectors.py [--seeds N] [--tables NAME ...] [--methods NAME ...] [--out FOLDER]

In a table each method has the same crowds with the same random streams, seed by seed, so that its difference from
uniform selection is that of selection. Every selector of the registry has a row. A selector that needs other conditions
(links of one client each, an asynchronous server, batteries) is compared with uniform selection under these.
"""

import argparse
import time
from pathlib import Path

from selector_tables.crowds import CROWDS
from selector_tables.figures import accuracy_figure, difference_figure
from selector_tables.methods import methods
from selector_tables.page import markdown, put_into, reasons_of
from selector_tables.runs import Done, Task, run_all
from selector_tables.tables import by_table, plain, rows_of, unexplained, write_csv

from fedsim.history import save


def tasks_of(tables: list[str], names: list[str] | None, seeds: range) -> list[Task]:
    """Return the runs of some tables and methods, with the rows that they are compared with."""
    asked = methods() if names is None else dict.fromkeys([*names, *(methods()[name].beside for name in names)])
    return [
        Task(table, name, seed)
        for seed in seeds
        for table in CROWDS
        for name in asked
        if table in tables and table in methods()[name].tables
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description="Every selector against uniform selection.")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--tables", nargs="+", choices=CROWDS, default=list(CROWDS), metavar="NAME")
    parser.add_argument("--methods", nargs="+", choices=methods(), default=None, metavar="NAME")
    parser.add_argument("--seconds", type=float, default=None, help="of simulated time, in place of each crowd's own")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--store", type=Path, default=None, help="folder of a store of trainings")
    parser.add_argument("--out", type=Path, default=Path("runs/compare_selectors"))
    parser.add_argument("--page", type=Path, default=None, help="page into which the tables are put, between its marks")
    arguments = parser.parse_args()

    seeds = range(arguments.first_seed, arguments.first_seed + arguments.seeds)
    tasks = tasks_of(arguments.tables, arguments.methods, seeds)
    begun_s = time.perf_counter()
    done = list(run_all(tasks, arguments.out / "runs", arguments.workers, arguments.seconds, arguments.store))
    report(done, arguments.out)
    if arguments.page is not None:
        put_into(arguments.page, (arguments.out / "tables.md").read_text(encoding="utf-8"))
    cpu_s = sum(one.cpu_s for one in done)
    print(f"{len(done)} runs, {cpu_s:.0f} s of processors ({cpu_s / len(done):.2f} s each), of this call", end=" ")
    print(f"{time.perf_counter() - begun_s:.0f} s by the clock")


def report(done: list[Done], folder: Path) -> None:
    """Print the tables of runs, and write them with their figures."""
    runs = by_table(done)
    rows = {table: rows_of(runs[table]) for table in CROWDS if table in runs}
    reasons = {table: reasons_of(table, found, rows.get("open", [])) for table, found in rows.items()}
    (folder / "tables.md").write_text(markdown(rows, reasons), encoding="utf-8")
    write_csv(rows, folder / "tables.csv")
    save(accuracy_figure(runs, rows), folder / "accuracy.png")
    save(difference_figure(rows), folder / "differences.png")
    for table, found in rows.items():
        print(f"{CROWDS[table].title}: {CROWDS[table].about}\n\n{plain(found)}\n")
    for name in ("tables.csv", "tables.md", "accuracy.png", "differences.png"):
        print(folder / name)
    if missing := unexplained(rows):
        print(f"loses without a sentence: {', '.join(missing)}")


if __name__ == "__main__":
    main()
