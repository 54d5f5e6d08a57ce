"""The runs of a table."""

from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path

from study_scripts import Runs, run, run_by_seed, with_deadline

from fedsim import Scenario, Study
from fedsim.studies.study import Variant
from selector_tables.methods import FACTS, methods


def study_of_table(table: str, names: Iterable[str], base: Scenario, seeds: Sequence[int]) -> Study:
    """Return the runs of rows with these names, and of those beside them, in a crowd."""
    asked = dict.fromkeys([*names, *(methods()[name].beside for name in names)])
    arms = [Variant(name, methods()[name].values(base)) for name in asked if table in methods()[name].tables]
    return Study(table, base, tuple(arms), tuple(seeds), ("final_accuracy",))


def runs_of(table: str, names: Iterable[str], base: Scenario, seeds: Sequence[int], out: Path) -> Runs:
    """Return the runs of a table in a crowd; with a deadline that a share of it meets, each seed has its own."""
    study, share = partial(study_of_table, table, names), FACTS["tables"][table].get("met_by")
    how = {"executor": "stacked", "store": False}
    if share is None:
        return run(study(base, seeds), out, **how)
    return run_by_seed(seeds, lambda seed: study(with_deadline(base, share, seed), [seed]), out, **how)
