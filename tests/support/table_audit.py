"""Checks the tables of a run: what holds for every row, and between the rows of a run, whatever the scenario.

`tests/conftest.py` lets every run of the tests pass here when it ends. Nothing ends before it begins; a client does one
thing at a time; outcome, fate and phase agree; bits, seconds and joules are not negative and add up; no client spends
more than its privacy budget; no update counts twice; rounds follow one another; and participations, rounds and privacy
accounts count the same. `results.audit` checks each participation against network, clock and batteries.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa

from fedsim.answers import unchecked
from fedsim.code_digest import is_builtin
from fedsim.history.outcomes import COMPUTE, DOWNLINK, NO_VALUE, NOT_CUT, Fate, Outcome
from fedsim.history.schema import TABLES
from fedsim.rounds.effects.privacy.budget import accountant_of
from fedsim.rounds.server.outside import SteppedServer
from fedsim.rounds.server.synchronous import SynchronousServer


class TableRows:
    def __init__(self, name, table):
        self.name, self.size, self._table = name, table.num_rows, table
        self._arrays = {}
        self.read = {}

    def __getitem__(self, column):
        """Return a column as an array of shape (n,): labels as their codes, no value as `NO_VALUE` or NaN."""
        self.read[column] = None
        if column not in self._arrays:
            self._arrays[column] = _array(self._table.column(column))
        return self._arrays[column]

    def has(self, column):
        return column in TABLES[self.name].arrow.names

    def shown(self, row, columns):
        return ", ".join(f"{column} = {self._table.column(column)[row].as_py()!r}" for column in columns)


def _array(column):
    values = column.combine_chunks()
    if pa.types.is_dictionary(column.type):
        values = values.indices
    kind = np.dtype(values.type.to_pandas_dtype())
    if values.null_count:
        values = values.fill_null(np.nan if kind.kind == "f" else NO_VALUE)
    return values.to_numpy(zero_copy_only=False).astype(kind)


def before(key, *columns):
    """Return the values of the row before each row with the same key; of the first one those given with each column."""
    order = np.argsort(key, kind="stable")
    follows = np.append(False, key[order][1:] == key[order][:-1])
    found = []
    for values, nothing in columns:
        shifted = np.append(nothing, values[order][:-1].astype(float))
        found.append(np.empty(key.size))
        found[-1][order] = np.where(follows, shifted, nothing)
    return found


TOLERANCE = 1e-9
"""Share of a sum that its rounding may take."""
_PHASES = ("downlink_s", "compute_s", "queue_s", "uplink_s")


def _used(rows):
    return rows["fate"] <= Fate.STALE_USED


def _lasts(rows):
    spent_s = sum(rows[phase] for phase in _PHASES)
    return ~(np.abs(spent_s - rows["end_s"] + rows["start_s"]) <= TOLERANCE * np.maximum(1.0, rows["end_s"]))


def _early(rows):
    return np.isin(rows["cut_in"], (DOWNLINK, COMPUTE))


def _uses(rows):
    return [rows[column] for column in TABLES["accounts"].arrow.names[1:]]


def _negative(*columns):
    return lambda rows: np.any([~(rows[column] >= 0) for column in columns], axis=0)


_TIMES = {
    "begins before time 0": _negative("start_s"),
    "ends before it begins": lambda rows: ~(rows["end_s"] >= rows["start_s"]),
}
_ON_THE_AIR = {
    **_TIMES,
    "has seconds of phases that do not add up to its length": _lasts,
    "has a phase of less than 0 s": _negative(*_PHASES),
    "has carried less than 0 bits": _negative("downlink_bits", "uplink_bits"),
    "has sent bits before its upload": lambda rows: _early(rows) & (rows["uplink_bits"] > 0),
    "has drawn less than 0 J": _negative("energy_j"),
    "was delivered although it was cut": lambda rows: (
        (rows["outcome"] == Outcome.DELIVERED) & (rows["cut_in"] != NOT_CUT)
    ),
    "was dropped although it was not cut": lambda rows: (
        (rows["outcome"] == Outcome.DROPPED) & (rows["cut_in"] == NOT_CUT)
    ),
}
_SPENDING = {
    **_ON_THE_AIR,
    "has spent less than no privacy": _negative("epsilon"),
    "was charged privacy before its upload": lambda rows: _early(rows) & (rows["epsilon"] > 0),
}
_FATES = {
    "has an outcome that its fate contradicts": lambda rows: (
        (rows["outcome"] == Outcome.DROPPED) != (rows["fate"] == Fate.WASTED_DROPPED)
    ),
    "was used and did not arrive": lambda rows: _used(rows) & (rows["cut_in"] != NOT_CUT),
    "was late and used as if in time": lambda rows: (rows["fate"] == Fate.USED) & (rows["outcome"] == Outcome.LATE),
    "was stale and used as if fresh": lambda rows: (rows["fate"] == Fate.USED) & (rows["staleness"] > 0),
    "has a served round that its fate contradicts": lambda rows: _used(rows) != (rows["served_round"] >= 0),
    "has a staleness that its fate contradicts": lambda rows: _used(rows) != (rows["staleness"] >= 0),
    "was used before the round in which it began": lambda rows: (
        (rows["served_round"] >= 0) & (rows["served_round"] < rows["round"])
    ),
    "weighs in the model although it was not used": lambda rows: (rows["weight"] != 0) & ~_used(rows),
    "has a weight that is no number": lambda rows: ~np.isfinite(rows["weight"]),
}
_ROUND = {
    **_TIMES,
    "has a duration that its ends contradict": lambda rows: rows["duration_s"] != rows["end_s"] - rows["start_s"],
    "counts less than no client": _negative("candidates", "selected", "delivered", "late", "dropped", "stale_used"),
    "has leaked more in the mean than at the most": lambda rows: (
        rows["mean_leakage"] > rows["largest_leakage"] * (1 + TOLERANCE)
    ),
}
ROW_RULES = {
    "participations": _SPENDING | _FATES,
    "probes": _SPENDING,
    "secure_steps": _ON_THE_AIR,
    "rounds": _ROUND,
    "edge_rounds": _ROUND,
    "evaluations": {"stands before time 0": _negative("time_s")},
    "accounts": {"has used its time for less than 0 s": lambda rows: ~(np.min(_uses(rows), axis=0) >= -TOLERANCE)},
    "edge_participations": {
        **_TIMES,
        "has longer transfers than itself": lambda rows: (
            rows["downlink_s"] + rows["uplink_s"] > np.maximum(rows["end_s"] - rows["start_s"], 0.0) + TOLERANCE
        ),
        "has less than 0 s or 0 bits of a transfer": _negative(
            "downlink_s", "uplink_s", "downlink_bits", "uplink_bits"
        ),
    },
}
"""The rules of each table, what is broken and where, in the order in which they are checked."""


@dataclass(frozen=True)
class Promised:
    """What a run has promised: sizes of messages in bits, accounts, and which rules do not hold for it."""

    bits: tuple[float, float]
    accountant: object = None
    narrow: tuple = ((), ())
    one_server: bool = True
    asks: bool = False
    draws: bool = False
    any_size: bool = False

    @classmethod
    def of(cls, server):
        clients, selector, runner = server.context.clients, server.context.selector, server._runner
        work, flat = clients.workload, isinstance(runner, SynchronousServer)
        return cls(
            (work.down_bits, work.up_bits),
            accountant_of(server.context.effects),
            _narrow(work),
            one_server=flat,
            asks=selector.probe is not None,
            draws=selector.draws_samples,
            # From outside, or by an effect of the user's own that changes plans.
            any_size=isinstance(runner, SteppedServer)
            or any(effect.says("plan") and not is_builtin(type(unchecked(effect))) for effect in clients.effects),
        )


def _narrow(work):
    """Return the sizes of messages down and up with parts of the model."""
    widths = work.learner.widths
    return ((), ()) if widths is None else (widths.down_bits[1:], widths.up_bits[1:] + work.beside_bits)


def check_tables(tables: Mapping[str, pa.Table], promised: Promised):
    rows = {name: TableRows(name, table) for name, table in tables.items()}
    for name, each in rows.items():
        for broken, wrong in ROW_RULES.get(name, {}).items():
            each.read = {}
            _refuse(each, wrong(each), broken, each.read)
        if each.size and name in _MORE:
            _MORE[name](each, promised)
    _check_budget([rows[name] for name in ("participations", "probes") if name in rows], promised)
    _check_sums(rows, promised)


def _check_participations(rows, promised):
    _check_order(rows, promised)
    if not promised.any_size:
        _check_messages(rows, promised)


def _check_releases(rows, promised):
    """Refuse clients that have spent more than they may, however their releases are composed."""
    if promised.accountant is not None:
        most = promised.accountant.total
        over = rows["spent"] > most * (1 + TOLERANCE)
        _refuse(rows, over, f"takes its client beyond the privacy budget of {most}", ("spent",))


def _check_order(rows, promised, who="client"):
    """Refuse rows that stand twice, and a client or an edge server that does two things at once."""
    start_s, end_s = rows["start_s"], rows["end_s"]
    started_s, ended_s = before(rows[who], (start_s, -math.inf), (end_s, -math.inf))
    early, same = start_s < ended_s, start_s == started_s
    _refuse(rows, early & same, "stands twice, so that its update would count twice", ("start_s", "end_s"))
    _refuse(rows, early & ~same, f"begins before the {who}'s one before it has ended", ("start_s",))


def _check_messages(rows, promised):
    """Refuse messages that are longer than they can be, or that arrived in part."""
    arrived = rows["cut_in"] == NOT_CUT
    for size, narrow, column in zip(promised.bits, promised.narrow, ("downlink_bits", "uplink_bits"), strict=True):
        sent, slack = rows[column], TOLERANCE * size
        short = arrived & (sent < size - slack)
        down = column == "downlink_bits"
        if promised.draws and down:
            continue
        if promised.draws:
            short &= sent > 0
        _refuse(rows, ~(sent <= size + slack), f"has carried more than the {size} bits of the message", (column,))
        for smaller in narrow:
            short &= np.abs(sent - smaller) > slack
        if promised.asks and down:
            # Clients that have trained for an answer are told to send, without bits, and do not work.
            short &= (sent > 0) | (rows["compute_s"] > 0)
        _refuse(rows, short, f"arrived without all {size} bits", (column,))


def _check_budget(tables, promised):
    accountant = promised.accountant
    if accountant is None or not accountant.adds_up:
        return
    counted = np.full(accountant.spent.size, float(accountant.declared))
    for rows in tables:
        np.add.at(counted, rows["client"], rows["epsilon"])
        over = (counted > accountant.total * (1 + TOLERANCE))[rows["client"]] & (rows["epsilon"] > 0)
        _refuse(rows, over, f"takes its client beyond the privacy budget of {accountant.total}", ("epsilon",))
    apart = ~(np.abs(counted - accountant.spent) <= TOLERANCE * np.maximum(1.0, accountant.spent))
    for client in np.flatnonzero(apart)[:1].tolist():
        _same(f"epsilon of client {client}", float(accountant.spent[client]), float(counted[client]))


def _check_rounds(rows, promised):
    """Refuse rounds that do not follow one another, and ends that are counted without a start."""
    edge = rows["edge"] if rows.has("edge") else np.zeros(rows.size, dtype=int)
    number, end_s, version, leakage = before(
        edge,
        (rows["round"], 0.0),
        (rows["end_s"], -math.inf),
        (rows["model_version"], 0.0),
        (rows["largest_leakage"], 0.0),
    )
    _refuse(rows, rows["round"] <= number, "does not have a higher number than the round before it", ("round",))
    _refuse(rows, rows["start_s"] < end_s, "begins before the round before it has ended", ("start_s",))
    _refuse(rows, rows["largest_leakage"] < leakage, "has leaked less than the round before it", ("largest_leakage",))
    # An edge server whose model was lost begins again with the cloud's, which may be older.
    if rows.name == "rounds":
        older = rows["model_version"] < version
        _refuse(rows, older, "has an older model than the round before it", ("model_version",))
        ended = np.cumsum(rows["delivered"] + rows["late"] + rows["dropped"], dtype=np.int64)
        over = ended > np.cumsum(rows["selected"], dtype=np.int64)
        shown = ("selected", "delivered", "late", "dropped")
        _refuse(rows, over, "counts more participations that ended than were begun so far", shown)


def _check_evaluations(rows, promised):
    time_s, version = before(np.zeros(rows.size), (rows["time_s"], -math.inf), (rows["model_version"], 0.0))
    _refuse(rows, rows["time_s"] < time_s, "stands before the evaluation before it", ("time_s",))
    older = rows["model_version"] < version
    _refuse(rows, older, "has an older model than the evaluation before it", ("model_version",))


_MORE = {
    "participations": _check_participations,
    "probes": _check_order,
    "secure_steps": _check_order,
    "edge_participations": partial(_check_order, who="edge"),
    "releases": _check_releases,
    "rounds": _check_rounds,
    "edge_rounds": _check_rounds,
    "evaluations": _check_evaluations,
}


def _check_sums(rows, promised):
    if promised.one_server:
        begun, rounds = rows["participations"], rows["rounds"]
        _same("participations begun", int(rounds["selected"].sum()), begun.size)
        used = int(np.count_nonzero(begun["fate"] == Fate.STALE_USED))
        _same("stale updates used", int(rounds["stale_used"].sum()), used)
    if promised.one_server and "accounts" in rows:
        used_s = np.sum(_uses(rows["accounts"]), axis=0)
        apart = ~(np.abs(used_s - used_s.max(initial=0.0)) <= TOLERANCE * max(1.0, used_s.max(initial=0.0)))
        _refuse(rows["accounts"], apart, "has not used as much time as another client", ())


def _same(what, counted, there):
    if counted != there:
        raise AssertionError(f"participations: its rows add up to {there} {what}; the server has counted {counted}")


def _refuse(rows, wrong, broken, shown):
    if np.count_nonzero(wrong):
        at = np.flatnonzero(wrong)
        more = f" and {at.size - 1} more up to row {at[-1]}" if at.size > 1 else ""
        place = rows.shown(int(at[0]), [column for column in ("round", "edge", "client") if rows.has(column)])
        told = rows.shown(int(at[0]), shown)
        raise AssertionError(f"{rows.name}, row {at[0]}{more} ({place}): {broken} ({told})")
