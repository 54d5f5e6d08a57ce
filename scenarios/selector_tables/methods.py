"""The rows of the tables: every selector of the registry, and the rows of `rows.toml`."""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Final

from fedsim import Scenario
from fedsim.selectors import SELECTORS, SelectorPort

HERE: Final = Path(__file__).parent
FACTS: Final[Mapping[str, Any]] = tomllib.loads((HERE / "rows.toml").read_text(encoding="utf-8"))
TABLES: Final = tuple(FACTS["tables"])
EVIDENCE: Final = tuple(FACTS["evidence"])


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
