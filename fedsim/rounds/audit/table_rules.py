"""What each row of a run's tables must fulfil, whatever the scenario."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from fedsim.arrays import BoolArray
from fedsim.history.outcomes import COMPUTE, DOWNLINK, NOT_CUT, Fate, Outcome
from fedsim.rounds.audit.table_rows import TableRows

TOLERANCE: Final = 1e-9
"""Share of a sum that its rounding may take."""
_PHASES: Final = ("downlink_s", "compute_s", "queue_s", "uplink_s")


@dataclass(frozen=True)
class RowRule:
    """A rule that is checked on each row by itself."""

    broken: str
    shown: tuple[str, ...]
    wrong: Callable[[TableRows], BoolArray]


def _used(rows: TableRows) -> BoolArray:
    used: BoolArray = rows["fate"] <= Fate.STALE_USED
    return used


def _seconds_left(rows: TableRows) -> BoolArray:
    spent_s = rows["downlink_s"] + rows["compute_s"]
    spent_s += rows["queue_s"]
    spent_s += rows["uplink_s"]
    spent_s -= rows["end_s"]
    spent_s += rows["start_s"]
    wrong: BoolArray = ~(np.abs(spent_s) <= TOLERANCE * np.maximum(1.0, rows["end_s"]))
    return wrong


def _negative(*columns: str) -> Callable[[TableRows], BoolArray]:
    def wrong(rows: TableRows) -> BoolArray:
        # The least value of a column is NaN if any is.
        if all(rows[column].min() >= 0 for column in columns):
            return np.zeros(rows.size, dtype=bool)
        negative: BoolArray = np.any([~(rows[column] >= 0) for column in columns], axis=0)
        return negative

    return wrong


def _weighs_unused(rows: TableRows) -> BoolArray:
    wrong: BoolArray = (rows["weight"] != 0) & ~_used(rows)
    return wrong


def _sent_early(rows: TableRows) -> BoolArray:
    cut_in = rows["cut_in"]
    wrong: BoolArray = ((cut_in == DOWNLINK) | (cut_in == COMPUTE)) & (rows["uplink_bits"] > 0)
    return wrong


def _charged_early(rows: TableRows) -> BoolArray:
    cut_in = rows["cut_in"]
    wrong: BoolArray = ((cut_in == DOWNLINK) | (cut_in == COMPUTE)) & (rows["epsilon"] > 0)
    return wrong


BEGINS_AT: Final = RowRule("begins before time 0", ("start_s",), lambda rows: ~(rows["start_s"] >= 0))
ENDS_BEFORE: Final = RowRule(
    "ends before it begins", ("start_s", "end_s"), lambda rows: ~(rows["end_s"] >= rows["start_s"])
)
_ON_THE_AIR: Final = (
    BEGINS_AT,
    ENDS_BEFORE,
    RowRule("has seconds of phases that do not add up to its length", ("start_s", *_PHASES, "end_s"), _seconds_left),
    RowRule("has a phase of less than 0 s", _PHASES, _negative(*_PHASES)),
    RowRule(
        "has carried less than 0 bits", ("downlink_bits", "uplink_bits"), _negative("downlink_bits", "uplink_bits")
    ),
    RowRule("has sent bits before its upload", ("cut_in", "uplink_bits"), _sent_early),
    RowRule("has drawn less than 0 J", ("energy_j",), _negative("energy_j")),
    RowRule(
        "was delivered although it was cut",
        ("outcome", "cut_in"),
        lambda rows: (rows["outcome"] == Outcome.DELIVERED) & (rows["cut_in"] != NOT_CUT),
    ),
    RowRule(
        "was dropped although it was not cut",
        ("outcome", "cut_in"),
        lambda rows: (rows["outcome"] == Outcome.DROPPED) & (rows["cut_in"] == NOT_CUT),
    ),
)
_SPENDING: Final = (
    *_ON_THE_AIR,
    RowRule("has spent less than no privacy", ("epsilon",), _negative("epsilon")),
    RowRule("was charged privacy before its upload", ("cut_in", "epsilon"), _charged_early),
)
_FATES: Final = (
    RowRule(
        "has an outcome that its fate contradicts",
        ("outcome", "fate"),
        lambda rows: (rows["outcome"] == Outcome.DROPPED) != (rows["fate"] == Fate.WASTED_DROPPED),
    ),
    RowRule("was used and did not arrive", ("fate", "cut_in"), lambda rows: _used(rows) & (rows["cut_in"] != NOT_CUT)),
    RowRule(
        "was late and used as if in time",
        ("fate", "outcome"),
        lambda rows: (rows["fate"] == Fate.USED) & (rows["outcome"] == Outcome.LATE),
    ),
    RowRule(
        "was stale and used as if fresh",
        ("fate", "staleness"),
        lambda rows: (rows["fate"] == Fate.USED) & (rows["staleness"] > 0),
    ),
    RowRule(
        "has a served round that its fate contradicts",
        ("fate", "served_round"),
        lambda rows: _used(rows) != (rows["served_round"] >= 0),
    ),
    RowRule(
        "has a staleness that its fate contradicts",
        ("fate", "staleness"),
        lambda rows: _used(rows) != (rows["staleness"] >= 0),
    ),
    RowRule(
        "was used before the round in which it began",
        ("round", "served_round"),
        lambda rows: (rows["served_round"] >= 0) & (rows["served_round"] < rows["round"]),
    ),
    RowRule("weighs in the model although it was not used", ("fate", "weight"), _weighs_unused),
    RowRule("has a weight that is no number", ("weight",), lambda rows: ~np.isfinite(rows["weight"])),
)
_ROUND: Final = (
    BEGINS_AT,
    ENDS_BEFORE,
    RowRule(
        "has a duration that its ends contradict",
        ("start_s", "end_s", "duration_s"),
        lambda rows: rows["duration_s"] != rows["end_s"] - rows["start_s"],
    ),
    RowRule(
        "counts less than no client",
        ("candidates", "selected", "delivered", "late", "dropped", "stale_used"),
        _negative("candidates", "selected", "delivered", "late", "dropped", "stale_used"),
    ),
    RowRule(
        "has leaked more in the mean than at the most",
        ("mean_leakage", "largest_leakage"),
        lambda rows: rows["mean_leakage"] > rows["largest_leakage"] * (1 + TOLERANCE),
    ),
)
ROW_RULES: Final[dict[str, tuple[RowRule, ...]]] = {
    "participations": _SPENDING + _FATES,
    "probes": _SPENDING,
    "secure_steps": _ON_THE_AIR,
    "rounds": _ROUND,
    "edge_rounds": _ROUND,
    "evaluations": (RowRule("stands before time 0", ("time_s",), _negative("time_s")),),
    "edge_participations": (
        BEGINS_AT,
        ENDS_BEFORE,
        RowRule(
            "has less than 0 s or 0 bits of a transfer",
            ("downlink_s", "uplink_s", "downlink_bits", "uplink_bits"),
            _negative("downlink_s", "uplink_s", "downlink_bits", "uplink_bits"),
        ),
    ),
}
"""The rules of each table, in the order in which they are checked."""
