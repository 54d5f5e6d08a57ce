"""The rows of the tables: every selector of the registry, and some of them under other options or conditions."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final

from fedsim.selectors import SELECTORS, SelectorPort
from selector_tables.crowds import BAND_HZ, CROWDS, Crowd

UNIFORM: Final = "uniform"
EVERY: Final = tuple(CROWDS)
DIVIDE: Final = ("joint-bandwidth", "ocean", "age-based")
"""Selectors that divide the band themselves: in a cell they need links of one client each, and so does their pair."""


@dataclass(frozen=True)
class Method:
    """A row: a selector with its options, and what else differs from the other rows."""

    kind: str
    options: Mapping[str, Any] = field(default_factory=dict)
    changes: Mapping[str, Any] = field(default_factory=dict)
    beside: str = UNIFORM  # has the same conditions
    tables: tuple[str, ...] = EVERY

    def selector(self, crowd: Crowd, seed: int) -> dict[str, Any]:
        """Return the selector's table of a scenario."""
        allowed = SELECTORS.option_names(self.kind)
        common = {"cohort": crowd.cohort, "tau_min_s": 0.15 * crowd.deadline_s(seed)}
        taken = {name: value for name, value in common.items() if name in allowed}
        if self.kind == "fedcs":
            taken |= {"deadline_s": crowd.deadline_s(seed)}
        return {"kind": self.kind, **taken, **OPTIONS.get(self.kind, {}), **self.options}


# Options that the crowds ask for, or that are not the default; all bands together are as wide as the shared one.
OPTIONS: Final[dict[str, dict[str, Any]]] = {
    **{kind: {"alpha": 20.0} for kind in ("pause", "bsfl", "pause-genie", "pause-enumeration")},
    **{kind: {"alpha": 20.0, "start": "last"} for kind in ("sa-pause", "pause-vanilla-sa")},
    "cpow-d": {"samples": 8},
    "fedcs": {"share": 0.25},
    "joint-bandwidth": {"bandwidth_hz": BAND_HZ, "snr_gap_db": 3.0},
    "ocean": {"bandwidth_hz": BAND_HZ, "least_hz": 1e4, "snr_gap_db": 3.0},
    "bn2-c": {"bandwidth_hz": BAND_HZ},
    "age-based": {"bandwidth_hz": BAND_HZ},
}
_IN_CELLS: Final = ("privacy", "open")
_OWN: Final = {"network.uplink.sharing": "dedicated", "network.uplink.bandwidth_hz": BAND_HZ / 8}
_SLOW: Final = {"network.fading.coherence_s": 10.0}
# A client works two seconds at most on a full battery, and longer clients run empty.
_BATTERY: Final = {
    "devices.energy": {
        "kind": "battery",
        "capacity_j": 4.0,
        "initial_from": 0.3,
        "compute_w": 2.0,
        "charge_w": 0.05,
        "least_charge": 0.05,
    }
}
_ASYNCHRONOUS: Final = {"rounds.policy": {"kind": "pisces", "concurrency": 8, "give_up_s": 10.0}}
_SAFA: Final = {"rounds.policy": {"kind": "safa", "share": 0.3, "max_wait_s": 2.0}}
_REFLS_SAFA: Final = {
    "rounds.policy": {"kind": "quorum", "share": 0.1, "max_wait_s": 2.0},
    "rounds.late": {"kind": "stale", "weight": "constant", "max_staleness": 5},
}
VARIANTS: Final[dict[str, Method]] = {
    "all, by SAFA": Method("all", changes=_SAFA, tables=_IN_CELLS),
    "all, by REFL's SAFA": Method("all", changes=_REFLS_SAFA, tables=_IN_CELLS),
    "fedsuv, mean": Method("fedsuv", {"undelivered": "mean"}),
    "oort, T of cohorts": Method("oort", {"preferred": "cohorts"}),
    "oort, no blacklist": Method("oort", {"blacklist_after": None}),
    **{
        f"{kind}, noise corrected": Method(kind, {"noise": "corrected"}, tables=("privacy",))
        for kind in ("clustered-similarity", "divfl", "importance")
    },
    "pisces, asynchronous": Method("pisces", {}, _ASYNCHRONOUS, "uniform, asynchronous", _IN_CELLS),
    **{f"{kind}, own bands": Method(kind, {}, _OWN, "uniform, own bands", _IN_CELLS) for kind in DIVIDE},
    **{
        f"{kind}, slow fading": Method(kind, {}, _SLOW, "uniform, slow fading", ("open",))
        for kind in ("best-channel", "proportional-fair")
    },
    **{
        f"{kind}, on batteries": Method(kind, {}, _BATTERY, "uniform, on batteries", ("open",))
        for kind in ("eafl", "fedzero", "ocean")
    },
    **{
        f"{kind}, own bands, slow fading": Method(
            kind, {}, {**_OWN, **_SLOW}, "uniform, own bands, slow fading", ("open",)
        )
        for kind in ("ocean", "age-based")
    },
    "ocean, own bands, uploads of 0.2 s": Method("ocean", {"upload_s": 0.2}, _OWN, "uniform, own bands", ("open",)),
    "pause, cohorts of 2": Method("pause", {"cohort": 2}, {}, "uniform, cohorts of 2"),
    "pause-enumeration, cohorts of 2": Method("pause-enumeration", {"cohort": 2}, {}, "uniform, cohorts of 2"),
    "uniform, asynchronous": Method(UNIFORM, {}, _ASYNCHRONOUS, tables=_IN_CELLS),
    "uniform, cohorts of 2": Method(UNIFORM, {"cohort": 2}),
    "uniform, cohorts of 16": Method(UNIFORM, {"cohort": 16}),
    "uniform, on batteries": Method(UNIFORM, {}, _BATTERY, tables=("open",)),
    "uniform, own bands": Method(UNIFORM, {}, _OWN, tables=_IN_CELLS),
    "uniform, own bands, slow fading": Method(UNIFORM, {}, {**_OWN, **_SLOW}, tables=("open",)),
    "uniform, slow fading": Method(UNIFORM, {}, _SLOW, tables=("open",)),
}
EVIDENCE: Final = (", exact numbers", ", slow fading", ", noise corrected", ", uploads of 0.2 s")
"""Ends of the names of rows that show why another row loses; a page names them in sentences and columns."""
NOT_BY_ITSELF: Final = {
    "pause-enumeration": "tries all sets, of which there are too many of a whole cohort: a row with cohorts of 2",
}
NOT_IN: Final = {
    "all-compute": ("privacy", "norms of updates are no private answers: refused before the run starts"),
}
"""Selectors that a table cannot have, with the table and the reason."""
ELSEWHERE: Final = frozenset({"fedsampling", "fixed-ratio", "poisson"})
"""Selectors of samples and not of clients, which `scenarios/fedsampling` compares, and of central privacy."""


@cache
def methods() -> dict[str, Method]:
    """Return all rows by name: every selector of the registry as it is, and the variants.

    A selector that reads numbers beside updates has a further row in the table with privacy, in which they are exact.
    """
    plain, exact = {}, {}
    for kind in sorted(set(SELECTORS.builtin) - ELSEWHERE):
        if kind in NOT_BY_ITSELF:
            continue
        without = _IN_CELLS if kind in DIVIDE else NOT_IN.get(kind, ("", ""))[:1]
        selector = _port(kind)
        name = f"{kind} (oracle)" if selector.oracle else kind
        plain[name] = Method(kind, tables=tuple(table for table in EVERY if table not in without))
        if selector.numbers:
            told = {"privacy.side_information": "exact"}
            exact[f"{kind}, exact numbers"] = Method(kind, {}, told, tables=("privacy",))
    return {**plain, **exact, **VARIANTS}


def _port(kind: str) -> SelectorPort:
    """Return a selector as the server sees it."""
    return SelectorPort.of(SELECTORS.make_recipe(Method(kind).selector(CROWDS["open"], 0)).build())
