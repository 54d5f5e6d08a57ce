"""The rows of the tables, and their runs: every selector of the registry, and the rows of `rows.toml`."""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np

from fedsim import Scenario, Study, simulate
from fedsim.selectors import SELECTORS, SelectorPort
from fedsim.studies.study import Variant

HERE: Final = Path(__file__).parent
FACTS: Final[Mapping[str, Any]] = tomllib.loads((HERE / "rows.toml").read_text(encoding="utf-8"))
TABLES: Final = tuple(FACTS["tables"])
UNIFORM: Final = "uniform"
DIVIDE: Final = ("joint-bandwidth", "ocean", "age-based")
"""Selectors that divide the band themselves: in a cell they need links of one client each, and so does their pair."""
EVIDENCE: Final = (", exact numbers", ", slow fading", ", noise corrected", ", uploads of 0.2 s")
"""Ends of the names of rows that show why another row loses; a page names them in sentences and columns."""
ALONE: Final = {"pause-enumeration": TABLES, "all-compute": ("privacy",), **dict.fromkeys(DIVIDE, ("privacy", "open"))}
"""Tables that a selector cannot be in as it is: too many sets, norms that are no private answers, bands of one."""
ELSEWHERE: Final = frozenset({"fedsampling", "fixed-ratio", "poisson"})
"""Selectors of samples and not of clients, which `scenarios/fedsampling` compares, and of central privacy."""


@dataclass(frozen=True)
class Method:
    """A row: a selector with its options, and what else differs from the other rows."""

    kind: str
    options: Mapping[str, Any] = field(default_factory=dict)
    changes: Sequence[str] = ()
    beside: str = UNIFORM
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
    plain, exact = {}, {}
    base = crowd("open", 0)
    for kind in sorted(set(SELECTORS.builtin) - ELSEWHERE):
        if own := [table for table in TABLES if table not in ALONE.get(kind, ())]:
            port = SelectorPort.of(SELECTORS.make(Method(kind).values(base)["selector"]).build())
            plain[f"{kind} (oracle)" if port.oracle else kind] = Method(kind, tables=own)
            if port.numbers:
                exact[f"{kind}, exact numbers"] = Method(kind, changes=["exact"], tables=("privacy",))
    return {**plain, **exact, **{name: Method(name.partition(",")[0], **row) for name, row in FACTS["rows"].items()}}


def crowd(table: str, seed: int, seconds: float | None = None) -> Scenario:
    """Return the crowd of a table, with uniform selection; that of phones has the deadline that half of them meet."""
    base = Scenario.load(HERE / ("phones.toml" if table == "deadline" else "cell.toml")).replace({"seed": seed})
    if table == "open":
        base = base.replace({"privacy": "none", "results.noise_to_signal": False, "rounds.until_s": 60.0})
    return base if seconds is None else base.replace({"rounds.until_s": seconds})


@cache
def met_by_half(seed: int) -> float:
    """Return the median duration in a first round of all phones."""
    everyone = {"selector": "all", "rounds": {"count": 1, "policy": "wait-for-all"}, "results.evaluate_every": 2}
    rows = simulate(crowd("deadline", seed).replace(everyone), store=False)
    return float(np.median(rows.column("participations", "end_s") - rows.column("participations", "start_s")))


def studies_of(table: str, names: Sequence[str] | None, seeds: Sequence[int], seconds: float | None) -> list[Study]:
    """Return the studies of a table; where each seed has its own deadline, each seed is a study."""
    asked = methods() if names is None else dict.fromkeys([*names, *(methods()[name].beside for name in names)])
    own = {name: methods()[name] for name in asked if table in methods()[name].tables}
    found = []
    for some in [[seed] for seed in seeds] if table == "deadline" else [seeds]:
        base = crowd(table, some[0], seconds)
        if table == "deadline":
            base = base.replace({"rounds.policy.deadline_s": met_by_half(some[0])})
        arms = tuple(Variant(name, method.values(base)) for name, method in own.items())
        found += [Study(table, base, arms, tuple(some), ("final_accuracy",))] if arms else []
    return found
