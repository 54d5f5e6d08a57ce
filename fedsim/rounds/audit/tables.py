"""The audit of every run: its tables, checked when their rows leave memory.

The rules are arithmetic over whole columns, so that they cost a small share of a run. What is checked: nothing ends
before it begins; a client takes part in one thing at a time; outcome, fate and phase agree; bits, seconds and energy
are not negative and add up; no client spends more than its privacy budget; no update is used twice; rounds follow one
another; and at the end participations, rounds and privacy accounts count the same. The full audit of `results.audit`
checks each participation against what the network, the clock and the batteries say, see
`fedsim.rounds.audit.audit`.
"""

import math
import time
from collections.abc import Callable
from typing import Final

import numpy as np
import pyarrow as pa

from fedsim.arrays import BoolArray, FloatArray
from fedsim.errors import AuditError
from fedsim.history.outcomes import NOT_CUT, Fate
from fedsim.privacy import PrivacyAccountant
from fedsim.rounds.audit.table_rows import Following, TableRows
from fedsim.rounds.audit.table_rules import ROW_RULES, TOLERANCE, RowRule

_NONE: Final[FloatArray] = np.zeros(0)
_PLACE: Final = ("round", "edge", "client")
Checked = Callable[[TableRows], None]


class TableAudit:
    """The audit of the tables of one run."""

    def __init__(
        self,
        bits: tuple[float, float],
        accountant: PrivacyAccountant | None = None,
        *,
        narrow: tuple[FloatArray, FloatArray] = (_NONE, _NONE),
        one_server: bool = True,
        asks: bool = False,
        draws: bool = False,
        any_size: bool = False,
        rules: dict[str, tuple[RowRule, ...]] = ROW_RULES,
    ) -> None:
        self.spent_s = 0.0
        self._asks, self._draws, self._narrow, self._any_size = asks, draws, narrow, any_size
        self._bits, self._accountant, self._one_server, self._rules = bits, accountant, one_server, rules
        self._participations, self._probes, self._steps = (Following(-1.0, -1.0) for _ in range(3))
        self._rounds = {name: Following(0.0, -math.inf, 0.0, 0.0) for name in ("rounds", "edge_rounds")}
        self._evaluations = Following(-math.inf, 0.0)
        self._epsilon: FloatArray = np.zeros(0)
        self._declared = 0.0 if accountant is None else accountant.declared
        self._rows = self._stale_used = self._selected = self._ended = self._stale_counted = 0
        self._more: dict[str, Checked] = {
            "participations": self._check_participations,
            "probes": self._check_probes,
            "secure_steps": lambda rows: self._check_order(rows, self._steps),
            "releases": self._check_releases,
            "rounds": self._check_rounds,
            "edge_rounds": self._check_rounds,
            "evaluations": self._check_evaluations,
        }

    def check(self, name: str, at: int, table: pa.Table) -> None:
        """Check rows of a table that have not been checked before."""
        began_s = time.thread_time()
        rows = TableRows(name, at, table)
        for rule in self._rules.get(name, ()):
            wrong = rule.wrong(rows)
            if wrong.any():
                _refuse(rows, wrong, rule.broken, rule.shown)
        if name in self._more and rows.size:
            self._more[name](rows)
        self.spent_s += time.thread_time() - began_s

    def end(self) -> None:
        """Compare the tables of a run that is over with one another, and with the privacy accounts."""
        if self._one_server:
            _same("participations begun", self._selected, "participations", self._rows)
            _same("stale updates used", self._stale_counted, "participations", self._stale_used)
        if self._accountant is not None and self._accountant.adds_up:
            spent = self._accountant.spent
            counted = np.full(spent.size, self._declared)
            counted[: self._epsilon.size] += self._epsilon[: spent.size]
            apart = ~(np.abs(counted - spent) <= TOLERANCE * np.maximum(1.0, spent))
            for client in np.flatnonzero(apart)[:1].tolist():
                _same(f"epsilon of client {client}", float(spent[client]), "participations", float(counted[client]))

    def _check_participations(self, rows: TableRows) -> None:
        self._check_order(rows, self._participations)
        if not self._any_size:
            self._check_messages(rows)
        self._check_budget(rows)
        self._rows += rows.size
        self._stale_used += int(np.count_nonzero(rows["fate"] == Fate.STALE_USED))

    def _check_probes(self, rows: TableRows) -> None:
        self._check_order(rows, self._probes)
        self._check_budget(rows)

    def _check_releases(self, rows: TableRows) -> None:
        """Refuse clients that have spent more than they may, however their releases are composed."""
        if self._accountant is not None:
            most = self._accountant.total
            over = rows["spent"] > most * (1 + TOLERANCE)
            _refuse(rows, over, f"takes its client beyond the privacy budget of {most}", ("spent",))

    def _check_order(self, rows: TableRows, following: Following) -> None:
        """Refuse rows that stand twice, and a client that does two things at once."""
        start_s, end_s = rows["start_s"], rows["end_s"]
        started_s, ended_s = following.before(rows["client"], start_s, end_s)
        early = start_s < ended_s
        if early.any():
            twice = early & (start_s == started_s)
            _refuse(rows, twice, "stands twice, so that its update would count twice", ("start_s", "end_s"))
            _refuse(
                rows,
                early & ~twice,
                "begins before the client's one before it has ended",
                ("start_s",),
                before_s=ended_s,
            )

    def _check_messages(self, rows: TableRows) -> None:
        """Refuse messages that are longer than they can be, or that arrived in part."""
        arrived = rows["cut_in"] == NOT_CUT
        for size, narrow, column in zip(self._bits, self._narrow, ("downlink_bits", "uplink_bits"), strict=True):
            sent, slack = rows[column], TOLERANCE * size
            short = arrived & (sent < size - slack)
            down = column == "downlink_bits"
            if self._draws and down:
                continue
            if self._draws:
                short &= sent > 0
            _refuse(rows, ~(sent <= size + slack), f"has carried more than the {size} bits of the message", (column,))
            for smaller in narrow.tolist():
                short &= np.abs(sent - smaller) > slack
            if self._asks and down:
                # Clients that have trained for an answer are told to send, without bits, and do not work.
                short &= (sent > 0) | (rows["compute_s"] > 0)
            _refuse(rows, short, f"arrived without all {size} bits", (column,))

    def _check_budget(self, rows: TableRows) -> None:
        """Refuse clients that spend more privacy than the budget allows."""
        if self._accountant is None or not self._accountant.adds_up:
            return
        client, epsilon, most = rows["client"], rows["epsilon"], self._accountant.total
        spent: FloatArray = np.bincount(client, epsilon, minlength=self._epsilon.size).astype(np.float64)
        spent[: self._epsilon.size] += self._epsilon
        self._epsilon = spent
        over = (self._declared + spent > most * (1 + TOLERANCE))[client] & (epsilon > 0)
        _refuse(rows, over, f"takes its client beyond the privacy budget of {most}", ("epsilon",))

    def _check_rounds(self, rows: TableRows) -> None:
        """Refuse rounds that do not follow one another, and ends that are counted without a start."""
        edge = rows["edge"] if rows.has("edge") else np.zeros(rows.size, dtype=np.int64)
        number, version, leakage = rows["round"], rows["model_version"], rows["largest_leakage"]
        before = self._rounds[rows.name].before(edge, number, rows["end_s"], version, leakage)
        _refuse(rows, number <= before[0], "does not have a higher number than the round before it", ("round",))
        _refuse(rows, rows["start_s"] < before[1], "begins before the round before it has ended", ("start_s",))
        _refuse(rows, leakage < before[3], "has leaked less than the round before it", ("largest_leakage",))
        # An edge server whose model was lost begins again with the cloud's, which may be older.
        if rows.name == "rounds":
            _refuse(rows, version < before[2], "has an older model than the round before it", ("model_version",))
            begun = self._selected + np.cumsum(rows["selected"], dtype=np.int64)
            ended = self._ended + np.cumsum(rows["delivered"] + rows["late"] + rows["dropped"], dtype=np.int64)
            shown = ("selected", "delivered", "late", "dropped")
            _refuse(rows, ended > begun, "counts more participations that ended than were begun so far", shown)
            self._selected, self._ended = int(begun[-1]), int(ended[-1])
            self._stale_counted += int(rows["stale_used"].sum())

    def _check_evaluations(self, rows: TableRows) -> None:
        one = np.zeros(rows.size, dtype=np.int64)
        time_s, version = rows["time_s"], rows["model_version"]
        before = self._evaluations.before(one, time_s, version)
        _refuse(rows, time_s < before[0], "stands before the evaluation before it", ("time_s",))
        _refuse(rows, version < before[1], "has an older model than the evaluation before it", ("model_version",))


def _same(what: str, counted: float, table: str, there: float) -> None:
    """Raise an error if what the server has counted is not what the rows of a table add up to."""
    if counted != there:
        raise AuditError(f"{table}: its rows add up to {there} {what}; the server has counted {counted}")


def _refuse(
    rows: TableRows,
    wrong: BoolArray,
    broken: str,
    shown: tuple[str, ...],
    before_s: FloatArray | None = None,
) -> None:
    """Raise an error that names the rows, if any, that break a rule."""
    at = np.flatnonzero(wrong)
    if not at.size:
        return
    row = int(at[0])
    more = f" and {at.size - 1} more up to row {rows.at + int(at[-1])}" if at.size > 1 else ""
    place = rows.told(row, tuple(column for column in _PLACE if rows.has(column)))
    told = rows.told(row, shown) + ("" if before_s is None else f", the one before ended at {before_s[row]} s")
    raise AuditError(f"{rows.name}, row {rows.at + row}{more} ({place}): {broken} ({told})")
