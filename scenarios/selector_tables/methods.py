"""The rows of the tables, and their runs: every selector of the registry, and the rows of `rows.toml`."""

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any, Final

from study_scripts import Runs, run, run_by_seed, with_deadline

from fedsim import Scenario, Study
from fedsim.learning import Executor, TrainingSetup
from fedsim.selectors import SELECTORS, SelectorPort
from fedsim.studies.study import Variant

HERE: Final = Path(__file__).parent
FACTS: Final[Mapping[str, Any]] = tomllib.loads((HERE / "rows.toml").read_text(encoding="utf-8"))
TABLES: Final = tuple(FACTS["tables"])
EVIDENCE: Final = tuple(FACTS["evidence"])
_SHARED: Final[dict[str, Executor]] = {}


@dataclass(frozen=True)
class Method:
    """A row: a selector with its options, and what else differs from the other rows."""

    kind: str
    options: Mapping[str, Any] = field(default_factory=dict)
    changes: Sequence[str] = ()
    beside: str = "uniform"
    tables: Sequence[str] = TABLES

    def values(self, base: Scenario) -> dict[str, Any]:
        """Return what the row replaces in a crowd."""
        told, allowed = base.describe(), SELECTORS.option_names(self.kind)
        deadline_s = told["rounds"]["policy"]["deadline_s"]
        common = {"cohort": told["selector"]["cohort"], "tau_min_s": 0.15 * deadline_s}
        own = {name: value for name, value in common.items() if name in allowed}
        own |= {"deadline_s": deadline_s} if self.kind == "fedcs" else {}
        chosen = {"kind": self.kind, **own, **FACTS["options"].get(self.kind, {}), **self.options}
        changed = {path: value for name in self.changes for path, value in FACTS["changes"][name].items()}
        return {"selector": chosen, **changed}


@cache
def methods() -> dict[str, Method]:
    """Return all rows by name; a selector that reads numbers beside updates has one in which they are exact."""
    plain, exact, base = {}, {}, crowd("open")
    for kind in sorted(set(SELECTORS.builtin) - set(FACTS["elsewhere"])):
        if own := FACTS["only"].get(kind, TABLES):
            port = SelectorPort.of(SELECTORS.make(Method(kind).values(base)["selector"]).build())
            plain[f"{kind} (oracle)" if port.oracle else kind] = Method(kind, tables=own)
            if port.numbers:
                exact[f"{kind}, exact numbers"] = Method(kind, changes=["exact"], tables=("privacy",))
    return {**plain, **exact, **{name: Method(name.partition(",")[0], **row) for name, row in FACTS["rows"].items()}}


def crowd(table: str) -> Scenario:
    """Return the crowd of a table, with uniform selection."""
    facts = FACTS["tables"][table]
    return Scenario.load(HERE / facts["crowd"]).replace(facts.get("set", {}))


def study_of_table(table: str, names: Iterable[str], base: Scenario, seeds: Sequence[int]) -> Study:
    """Return the runs of rows with these names, and of those beside them, in a crowd."""
    asked = dict.fromkeys([*names, *(methods()[name].beside for name in names)])
    arms = [Variant(name, methods()[name].values(base)) for name in asked if table in methods()[name].tables]
    return Study(table, base, tuple(arms), tuple(seeds), ("final_accuracy",))


def runs_of(
    table: str, names: Iterable[str], base: Scenario, seeds: Sequence[int], out: Path, jobs: int | None = None
) -> Runs:
    """Return the runs of a table in a crowd; with a deadline that a share of it meets, each seed has its own."""
    study, share = partial(study_of_table, table, names), FACTS["tables"][table].get("met_by")
    how = {"executor": shared_executor, "store": False, "jobs": jobs}
    if share is None:
        return run(study(base, seeds), out, **how)
    return run_by_seed(seeds, lambda seed: study(with_deadline(base, share, seed), [seed]), out, **how)


def shared_executor(setup: TrainingSetup, device: str) -> Executor:
    """Return the one stacked executor of this process for a model, local training and data set.

    Its steps are recorded once: initial weights come with each job, so that runs of several seeds can share it.
    """
    from fedsim.learning.executors.stacked.executor import StackedExecutor  # torch, in the workers alone

    key = f"{setup.model!r} {setup.local!r} {setup.precision} {device} {setup.data.digest}"
    if key not in _SHARED:
        _SHARED[key] = StackedExecutor(setup, device)
    return _SHARED[key]
