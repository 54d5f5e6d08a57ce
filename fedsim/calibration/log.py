"""Measured participations: columns as in fedsim's own table, of which most may be missing."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from fedsim.arrays import BoolArray, FloatArray, IntArray
from fedsim.calibration.consistency import between_s, check_phases, left_s, never_ended, numbered, once, unusual
from fedsim.errors import DataError
from fedsim.history.outcomes import NOT_CUT, PHASES, UPLINK, Outcome
from fedsim.history.schema import PARTICIPATIONS
from fedsim.inputs.bounds import NUMBER
from fedsim.inputs.files import MAX_BYTES, check_file
from fedsim.inputs.tables import IDS, Table, identified, instants, note, origin_of, reading
from fedsim.inputs.tables.table import Missing
from fedsim.measurements import MOST_WORK
from fedsim.units import SECONDS

DURATIONS: Final = tuple(f"{phase}_s" for phase in PHASES)
_FEWEST: Final = 10
"""Participations without which no law is fitted."""
_NUMBERS: Final = (*DURATIONS, "round", "start_s", "end_s", "queue_s", "work", "samples")
_LABELS: Final = (("outcome", Outcome.labels(), int(Outcome.DELIVERED)), ("cut_in", PHASES, NOT_CUT))
"""Columns of labels, with the code of an empty cell, and of all rows where the column is missing."""
_TIMES: Final = ("start_s", "start"), ("end_s", "end")
_LEAST_WORK: Final = 1e-9
_MUCH_WORK: Final = 2.0
"""Share of the local work that few logs have in the median, and numbers of epochs and per cent all have."""


@dataclass(frozen=True)
class Log:
    client: IntArray
    group: IntArray
    names: tuple[str, ...]
    groups: tuple[str, ...]
    round: IntArray | None
    start_s: FloatArray | None
    end_s: FloatArray | None
    spent_s: FloatArray
    cut_in: IntArray
    work: FloatArray
    samples: IntArray | None
    outcome: IntArray
    candidates: IntArray
    notes: tuple[str, ...]

    @property
    def rounds(self) -> int:
        return 0 if self.round is None else int(np.unique(self.round).size)

    @property
    def unknown(self) -> str:
        """Which phase no participation ended, in words; empty if there is none."""
        phases = np.arange(len(PHASES))[:, None]
        ended = (self.cut_in == NOT_CUT) | (self.cut_in > phases)
        return never_ended(self.spent_s, self.cut_in == phases, ended, PHASES)

    def part(self, rows: BoolArray) -> "Log":
        """Return the log of some of the participations; clients keep their numbers."""
        changed: dict[str, Any] = {
            name: None if (values := getattr(self, name)) is None else values[rows]
            for name in ("client", "group", "round", "start_s", "end_s", "cut_in", "work", "outcome")
        }
        return replace(self, spent_s=self.spent_s[:, rows], **changed)

    def round_times_s(self) -> FloatArray:
        if self.round is None or self.start_s is None or self.end_s is None:
            return np.zeros(0)
        return round_times_s(self.round, self.start_s, self.end_s)


def round_times_s(number: IntArray, start_s: FloatArray, end_s: FloatArray) -> FloatArray:
    began, ended = spans_of_rounds(number, start_s, end_s)
    return np.asarray(ended - began)


def spans_of_rounds(number: IntArray, start_s: FloatArray, end_s: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the first start and the last end of each round, shape (r,) both, of participations, shape (n,)."""
    order = np.argsort(number, kind="stable")
    first = np.flatnonzero(np.diff(number[order], prepend=np.nan))
    return np.minimum.reduceat(start_s[order], first), np.maximum.reduceat(end_s[order], first)


def read_log(path: str | Path, rounds: str | Path | None = None) -> Log:
    place, beside = Path(path), dict[str, NDArray[Any]]()
    if place.is_dir():
        rounds = place / "rounds.parquet" if rounds is None else rounds
        place = place / "participations.parquet"
        if (place.parent / "clients.parquet").exists():
            beside = _columns(Table.read(place.parent / "clients.parquet"))
    table = Table.read(check_file(place, MAX_BYTES, DataError))
    table.called(*IDS)
    with reading() as read:
        columns = _columns(table)
        if not ({"start_s", "end_s"} <= columns.keys() or columns.keys() & set(DURATIONS)):
            table.refuse(
                f"no column tells a time; needed: {', '.join(DURATIONS)}, or start_s and end_s; its columns: "
                f"{', '.join(table.columns)}"
            )
        if others := _not_read(table):
            note(table.where, f"columns not read: {', '.join(others)}")
    candidates = np.zeros(0, dtype=np.int64)
    if rounds is not None:
        candidates = Table.read(check_file(rounds, MAX_BYTES, DataError)).whole("candidates")
    return _log(columns, candidates, beside, str(place), read.notes)


def _columns(table: Table) -> dict[str, NDArray[Any]]:
    """Return the columns of a log that are known, numbers in the units of their names, others as texts."""
    found: dict[str, NDArray[Any]] = {**_ends(table)}
    for name in _NUMBERS:
        if name not in found and table.find(name) is not None:
            least = 0.0 if name in (*DURATIONS, "queue_s") else -np.inf
            bound = SECONDS if name.endswith("_s") else NUMBER
            missing: Missing = "nan" if name in (*DURATIONS, "samples") else "refused"
            found[name] = table.numbers(name, bound, least=least, missing=missing)
    if "work" in found:
        beyond = np.clip(found["work"], 0.0, MOST_WORK) != found["work"]
        table.refuse_first("work", beyond, f"shares of the local work, 0 to {MOST_WORK:g}")
    if "round" in found:
        found["round"] = table.whole("round").astype(np.float64)
    for name, known, absent in _LABELS:
        if table.find(name) is not None:
            code = table.codes(name, known)
            if name == "outcome":
                table.note(int((code < 0).sum()), "rows have no outcome: they are taken to have delivered")
            found[name] = np.where(code < 0, absent, code)
    _fill_phases(table, found)
    if table.find("class") is not None:
        texts = table.texts("class")
        found["class"] = np.array(texts.to_pylist(), dtype=object)
        table.note(texts.null_count, "rows have no class: they are of one of their own, None")
    if (client := table.find(*IDS)) is not None:
        ids, labels = identified(table, client)
        found["client"] = ids if labels is None else np.array(labels)[ids]
    return found


def _fill_phases(table: Table, found: Mapping[str, NDArray[Any]]) -> None:
    """Make phases 0 to which a participation that was lost did not come; refuse others without a time."""
    delivered = found.get("outcome", np.full(table.rows, Outcome.DELIVERED)) == Outcome.DELIVERED
    for name in found.keys() & set(DURATIONS):
        empty = np.isnan(found[name])
        table.refuse_first(name, empty & delivered, "numbers of at least 0 where a participation was delivered")
        found[name][empty] = 0.0


def _not_read(table: Table) -> list[str]:
    """Return the columns that say nothing here, but for those of fedsim's own table."""
    names = (*_NUMBERS, *(name for name, _, _ in _LABELS), "class")
    read = {table.find(*some) for some in (*((name,) for name in names), *_TIMES, IDS)}
    own = {column.name for column in PARTICIPATIONS.columns}
    return [name for name in table.columns if name not in read | own and "." not in name]


def _ends(table: Table) -> dict[str, FloatArray]:
    """Return starts and ends, in seconds from the first of them on where they are dates; none without both."""
    if not all(table.find(*names) for names in _TIMES):
        return {}
    start, end = (instants(table, table.called(*names)) for names in _TIMES)
    if start.kind == "clock" or start.dated:
        start = start.by_days(table, table.labels(table.called(*IDS))[0])
        end = end.after(start)
    begins = origin_of(table, [start, end], None)
    for names, one in zip(_TIMES, (start, end), strict=True):
        table.refuse_first(table.called(*names), np.isnan(one.value), "numbers or dates")
    return {"start_s": start.since(begins), "end_s": end.since(begins)}


def _log(
    columns: Mapping[str, NDArray[Any]],
    candidates: IntArray,
    clients: Mapping[str, NDArray[Any]],
    where: str,
    notes: list[str],
) -> Log:
    columns, again = once(columns, where)
    size, notes = columns["client"].size, [*notes, *([again] if again else [])]
    if size < _FEWEST:
        twice = f" ({again})" if again else ""
        raise DataError(f"{where}: it has {size} participations{twice}; laws are fitted to at least {_FEWEST}")
    if "outcome" not in columns:
        notes.append("outcome missing: every participation is taken to have delivered")
    numbers = {name: columns[name] for name in _NUMBERS if name in columns}
    entries, client = numbered(columns["client"])
    names = tuple(entries.astype(str).tolist())
    alike = np.array(["all"]), np.zeros(size, dtype=np.int64)
    groups, group = numbered(columns["class"]) if "class" in columns else alike
    outcome, cut_in = (columns.get(name, np.full(size, absent)) for name, _, absent in _LABELS)
    spent_s = _spent(numbers, size, where, notes)
    if not numbers.keys() & set(DURATIONS):
        cut_in[cut_in != NOT_CUT] = UPLINK
    notes += _cut(outcome, cut_in, spent_s, where, known="cut_in" in columns)
    samples = _samples(numbers, clients, names, client, where)
    if samples is None and np.nanmax(spent_s[1], initial=0.0) > 0:
        notes.append("samples missing: all clients are taken to have as many")
    work = numbers.get("work", np.ones(size))
    if (much := float(np.median(work))) > _MUCH_WORK:
        notes.append(f"work is {much:g} in the median: is it a share of the local work?")
    if long := unusual(spent_s):
        notes.append(long)
    if not {"round", "start_s", "end_s"} <= numbers.keys():
        notes.append("round, start_s or end_s missing: round times are not compared")
    return Log(
        client=client,
        group=group,
        names=names,
        groups=tuple(groups.astype(str).tolist()),
        round=numbers["round"].astype(np.int64) if "round" in numbers else None,
        start_s=numbers.get("start_s"),
        end_s=numbers.get("end_s"),
        spent_s=spent_s,
        cut_in=cut_in,
        work=np.maximum(work, _LEAST_WORK),
        samples=samples,
        outcome=outcome,
        candidates=candidates,
        notes=tuple(notes),
    )


def _spent(numbers: Mapping[str, FloatArray], size: int, where: str, notes: list[str]) -> FloatArray:
    """Return the time in each phase, shape (3, n), NaN for a phase without a column; add to the notes."""
    spent_s = np.full((len(PHASES), size), np.nan)
    for phase, name in enumerate(DURATIONS):
        if name in numbers:
            spent_s[phase] = numbers[name]
    if "queue_s" in numbers:
        spent_s[UPLINK] += numbers["queue_s"]
    took_s = None
    if {"start_s", "end_s"} <= numbers.keys():
        took_s = between_s(numbers["start_s"], numbers["end_s"], where)
    missing = [name for name in DURATIONS if name not in numbers]
    if len(missing) < len(DURATIONS):
        notes += _against(took_s, spent_s, missing, where)
    elif took_s is not None:
        spent_s[UPLINK] = took_s
        notes.append("no column tells the time of a phase: the whole participation is taken for its uplink")
    return spent_s


def _against(took_s: FloatArray | None, spent_s: FloatArray, missing: list[str], where: str) -> list[str]:
    """Hold phases against the time from start to end, of which the one that is missing has the rest; return notes."""
    as_zero = f"{' and '.join(missing)} missing: taken as 0"
    if took_s is None:
        return [as_zero] if missing else []
    known_s, names = np.nansum(spent_s, axis=0), " + ".join(name for name in DURATIONS if name not in missing)
    gaps = check_phases(took_s, known_s, names, where, all_known=not missing)
    if len(missing) == 1:
        spent_s[DURATIONS.index(missing[0])] = left_s(took_s, known_s)
        return [f"{missing[0]} missing: what end_s - start_s has beside the other phases is taken for it"]
    return [note for note in (gaps, as_zero if missing else "") if note]


def _samples(
    numbers: Mapping[str, FloatArray],
    clients: Mapping[str, NDArray[Any]],
    names: tuple[str, ...],
    client: IntArray,
    where: str,
) -> IntArray | None:
    """Return the samples of each client, of the log or of a run's table of clients, shape (K,); None for neither."""
    if "samples" in numbers:
        found = np.zeros(len(names))
        found[client] = numbers["samples"]
        wrong = np.flatnonzero((numbers["samples"] != np.rint(found[client])) | (found[client] < 1))
        if wrong.size:
            raise DataError(
                f"{where}: samples, row {wrong[0] + 1}: {numbers['samples'][wrong[0]]:g} is not allowed; samples: each "
                "client has one whole number of at least 1 in all rows"
            )
        return found.astype(np.int64)
    if not {"client", "samples"} <= clients.keys():
        return None
    known = dict(zip(clients["client"].astype(str).tolist(), clients["samples"].tolist(), strict=True))
    told = np.array([known.get(name) or 0 for name in names], dtype=np.float64)
    return told.astype(np.int64) if np.nan_to_num(told).min() >= 1 else None


def _cut(outcome: IntArray, cut_in: IntArray, spent_s: FloatArray, where: str, *, known: bool) -> list[str]:
    """Fill in where lost participations were cut if a log does not say it; refuse delivered ones that were cut."""
    wrong = np.flatnonzero((outcome == Outcome.DELIVERED) & (cut_in != NOT_CUT))
    if wrong.size:
        raise DataError(
            f"{where}: row {wrong[0] + 1}: cut_in = {PHASES[cut_in[wrong[0]]]!r} is not allowed with an outcome of "
            "'delivered'; allowed: an outcome of 'late' or 'dropped', or no cut_in"
        )
    # A late participation may have ended after its round.
    unsaid = (cut_in == NOT_CUT) & (outcome == Outcome.DROPPED if known else outcome != Outcome.DELIVERED)
    if not unsaid.any():
        return []
    cut_in[unsaid] = _last_phase(spent_s[:, unsaid])
    which = f"of {np.count_nonzero(unsaid):,} lost participations " if known else ""
    return [f"cut_in {which}missing: the last phase that took time is taken for the one that was cut"]


def _last_phase(spent_s: FloatArray) -> IntArray:
    spent = np.nan_to_num(spent_s) > 0
    return np.where(spent.any(axis=0), len(PHASES) - 1 - np.argmax(spent[::-1], axis=0), 0)
