"""Measured availability: the online intervals of devices, repeated with each device's own period.

Streams: ``trace-availability`` by client, for a random mapping of clients to devices.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Final, Literal

import numpy as np
from numpy.typing import ArrayLike

from fedsim.arrays import BoolArray, FloatArray, IntArray
from fedsim.devices.availability.on_off import OnOffProcess, count_until
from fedsim.errors import DataError
from fedsim.inputs.bounds import check_column
from fedsim.inputs.paths import InputPath
from fedsim.inputs.tables import DAY_S, IDS, After, Table, identified, instants, note, origin_of, owned, picked
from fedsim.inputs.tables.content import suffix_of
from fedsim.registry import Component
from fedsim.streams import Streams
from fedsim.traces import PICKLES, Assignment, entries_of, read_pickle
from fedsim.units import SECONDS, Positive, Seconds

_FIELD: Final = "devices.availability.path"


@dataclass(frozen=True)
class Intervals:
    """The online intervals of n devices in one row, sorted and disjoint within each device.

    Those of device d are the elements from ``offset[d]`` to ``offset[d + 1]``, in seconds of its period.
    """

    offset: IntArray
    start_s: FloatArray
    end_s: FloatArray
    period_s: FloatArray

    @classmethod
    def of(
        cls, device: ArrayLike, start_s: ArrayLike, end_s: ArrayLike, period_s: ArrayLike, where: str = ""
    ) -> "Intervals":
        """Return intervals given in any order, sorted; those that overlap or touch become one.

        One that ends before it starts lasts over the end of the period, and one that ends after the period is cut
        there. A period may be infinite: nothing is repeated then.
        """
        period = np.asarray(period_s, dtype=np.float64)
        owner, start, end = np.asarray(device, dtype=np.int64), np.asarray(start_s, float), np.asarray(end_s, float)
        if not period.size or not np.all(period > 0):
            raise DataError("every device needs a period above 0 s")
        if owner.size and not (owner.min() >= 0 and owner.max() < period.size):
            raise DataError(f"devices are numbered from 0 to {period.size - 1}")
        if not np.all((start >= 0) & np.isfinite(start) & (end >= 0)):
            raise DataError("starts and ends of intervals must be finite numbers of at least 0 s")
        for name, times_s in (("start_s", start), ("end_s", end), ("period_s", period)):
            check_column(times_s[np.isfinite(times_s)], name, SECONDS, "intervals", DataError)
        over = (end < start) & (start < period[owner])
        if np.any(over & np.isinf(period[owner])):
            row = int(np.flatnonzero(over & np.isinf(period[owner]))[0])
            raise DataError(
                f"an interval from {start[row]:g} to {end[row]:g} s is not allowed; allowed: an end after the start, "
                "or a period over whose end it lasts"
            )
        outside, empty = start >= period[owner], (start == end) & (start < period[owner])
        cut = (end > period[owner]) & ~outside
        for rows, what in (
            (over, "intervals end before they start: they last over the end of the period"),
            (cut, "intervals are cut at the end of the period"),
            (outside, "intervals not used: they begin at the end of the period, or later"),
            (empty, "intervals not used: they have no length"),
        ):
            if where and rows.any():
                note(f"{where}: {int(rows.sum()):,} {what}")
        owner, start = np.append(owner, owner[over]), np.append(start, np.zeros(over.sum()))
        end = np.append(np.where(over, period[owner[: end.size]], end), end[over])
        end = np.minimum(end, period[owner])
        kept = np.flatnonzero(end > start)
        kept = kept[np.lexsort((start[kept], owner[kept]))]
        owner, start, end = _joined(owner[kept], start[kept], end[kept])
        offset = np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=period.size))])
        return cls(offset, start, end, period)

    @property
    def devices(self) -> int:
        return self.period_s.size


def _joined(owner: IntArray, start: FloatArray, end: FloatArray) -> tuple[IntArray, FloatArray, FloatArray]:
    """Return sorted intervals in which those of one owner that overlap or touch have become one."""
    # Shifted by its owner, an interval can only meet one of the same owner.
    shift = owner * (2.0 * end.max(initial=1.0))
    reach = np.maximum.accumulate(end + shift)
    fresh = np.ones(owner.size, dtype=np.bool_)
    fresh[1:] = (start + shift)[1:] > reach[:-1]
    first = np.flatnonzero(fresh)
    if not first.size:
        return owner, start, end
    return owner[first], start[first], np.maximum.reduceat(end, first)


def read_intervals(path: str | Path, period_s: float | None = None) -> Intervals:
    """Return the intervals of the devices of a file; ``period_s`` comes before the periods that the file states."""
    return Traces(path=str(path), period_s=period_s).intervals()[0]


def _from_behaviour(trace: Any, where: str) -> Intervals:
    """Return the intervals of FedScale's dictionary; a last start without an end lasts to the end of the period."""
    if not isinstance(trace, dict) or not trace:
        raise DataError("a behaviour trace is a dictionary with at least one device")
    entries = [(entry["active"], entry["inactive"], entry["finish_time"]) for entry in trace.values()]
    period = np.array([finish for _, _, finish in entries], dtype=np.float64)
    active = [list(starts) for starts, _, _ in entries]
    inactive = [list(ends) + [finish] * (len(starts) - len(ends)) for starts, ends, finish in entries]
    if any(len(starts) != len(ends) for starts, ends in zip(active, inactive, strict=True)):
        raise DataError("a device has more ends (inactive) than starts (active)")
    owner = np.repeat(np.arange(period.size), [len(starts) for starts in active])
    return Intervals.of(owner, np.concatenate([[], *active]), np.concatenate([[], *inactive]), period, where)


def _moved(
    start_s: FloatArray, end_s: FloatArray, period_s: FloatArray, origin: float | str | None
) -> tuple[FloatArray, FloatArray]:
    """Return intervals within the period that begins at an origin in their midst."""
    if origin is None:
        return start_s, end_s
    length_s = np.where(end_s < start_s, end_s + period_s - start_s, end_s - start_s)
    start_s = np.mod(start_s, period_s)
    reach_s = start_s + length_s
    return start_s, np.where((reach_s > period_s) & (length_s < period_s), reach_s - period_s, reach_s)


def _periods(table: Table, period_s: float | None, device: IntArray, devices: int, row: IntArray) -> FloatArray:
    """Return the period of each device: that of the scenario, or the one that all its rows state."""
    if period_s is not None:
        return np.full(devices, period_s)
    if table.find("period_s") is None:
        names = ", ".join(table.columns)
        table.refuse(
            f"there is no column 'period_s'; its columns: {names}; allowed: the field period_s, the period of all "
            "devices, or after = 'none', with which nothing is repeated"
        )
    stated = table.numbers("period_s", SECONDS)
    if stated.size == devices and "offset" in table.columns:
        return stated
    period = np.full(devices, np.nan)
    period[device] = stated[row]
    if (other := np.flatnonzero(stated[row] != period[device])).size:
        table.refuse(f"period_s, row {row[other[0]] + 1}: a device has two periods; allowed: one")
    return np.where(np.isnan(period), 1.0, period)


class Traces(Component):
    """Intervals from a file: each client follows one device, with the device's period, from the start of the run.

    FedScale (Lai et al., "FedScale: Benchmarking model and system performance of federated learning at scale",
    ICML 2022) asks only whether a client is online when its task ends: a client that leaves and returns in between
    counts as if it had stayed. Its code moves a pointer through the intervals by one step for each call, so that
    its results depend on earlier calls; here they are found by bisection. Its intervals include
    their ends; so does the end of a task here, while a client whose interval ends right now is no candidate.

    Attributes
    ----------
    path : a table with the columns ``device`` (or ``client``), ``start_s``, ``end_s`` and ``period_s``, or FedScale's
        pickle; times may be dates, seconds since 1970, or hours such as ``22:00``
    mapping : how clients get their devices: ``"random"``, ``"sequential"`` in the order of numbers or of first rows,
        or ``"id"``, each client the rows of its own id; by default ``"id"`` where the column is called ``client`` or
        ``id``, and ``"random"`` where it is called ``device``
    checked : ``"whole-task"``, a client that leaves drops out at that instant; or ``"end-point"``, one that is
        offline when its task would end drops out at the instant at which it left for the last time before
    period_s : period of every device, for tables without that column
    after : ``"repeat"``: intervals repeat after the period; ``"none"``: a client is away after its last interval;
        ``"hold"``: as ``"none"``, and a last interval without an end lasts for ever
    origin : instant of the file at which the run begins, a number or a date; by default 0, or the first date
    """

    may_leave: ClassVar[bool] = True

    path: InputPath
    mapping: Assignment | Literal["id"] | None = None
    checked: Literal["whole-task", "end-point"] = "whole-task"
    period_s: Positive[Seconds] | None = None
    after: After = "repeat"
    origin: float | str | None = None

    def build(self, clients: int, streams: Streams) -> "TraceAvailability":
        intervals, mapping = self.intervals(clients)
        device = np.arange(clients)
        if mapping != "id":
            device = entries_of(clients, intervals.devices, mapping, "trace-availability", streams)
        return TraceAvailability(intervals, device, self.checked)

    def intervals(self, clients: int | None = None) -> tuple[Intervals, Assignment | Literal["id"]]:
        """Return the intervals of devices, or of K clients where rows are theirs by id, and how clients get them."""
        where = f"{_FIELD}: {self.path}"
        try:
            if suffix_of(self.path) in PICKLES:
                found = _from_behaviour(read_pickle(self.path), where)
                if self.mapping == "id":
                    raise DataError("mapping = 'id' is not allowed for a pickle; allowed: 'random', 'sequential'")
                return found, self.mapping or "random"
            table = Table.read(self.path, _FIELD)
            by_id = clients is not None and table.find("client", "id") is not None
            mapping = self.mapping or ("id" if by_id else "random")
            return self._of_table(table, clients if mapping == "id" else None), mapping
        except DataError as error:
            raise error if self.path in str(error) else DataError(f"{where}: {error}") from None
        except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError, MemoryError) as error:
            raise DataError(f"{where}: does not hold intervals: {error}") from None

    def _of_table(self, table: Table, clients: int | None) -> Intervals:
        row = np.arange(table.rows)
        if "offset" in table.columns:
            counts = np.diff(table.whole("offset"))
            if np.any(counts < 0) or counts.sum() != table.values("start_s").size:
                table.refuse("offset must be whole numbers that rise from 0 to the number of intervals")
            if clients is not None and counts.size != clients:
                table.refuse(
                    f"it has {counts.size} devices and there are {clients} clients; mapping = 'id' needs as many"
                )
            device, devices, row = np.repeat(np.arange(counts.size), counts), counts.size, np.arange(counts.sum())
        elif clients is not None:
            row, device = owned(table, clients, "any")
            devices = clients
        else:
            ids, labels = identified(table, table.called("device", *IDS))
            device = ids if labels is not None else np.unique(ids, return_inverse=True)[1].reshape(-1)
            devices = int(device.max(initial=-1)) + 1
        least = 0.0 if self.origin is None else -np.inf
        start, end = (
            instants(table, table.called(*names), least=least) for names in (("start_s", "start"), ("end_s", "end"))
        )
        begins = origin_of(table, [start, end], self.origin)
        start_s, end_s = start.since(begins)[row], end.since(begins)[row]
        if self.after == "repeat":
            period = _periods(table, self.period_s or (DAY_S if start.kind == "clock" else None), device, devices, row)
            start_s, end_s = _moved(start_s, end_s, period[device], self.origin)
        else:
            period = np.full(devices, np.inf)
            early = start_s < 0
            table.note(int((early & (end_s > 0)).sum()), "intervals are cut at the beginning of the run")
            table.note(int((end_s <= 0).sum()), "intervals not used: they end before the beginning of the run")
            device, row, start_s, end_s = picked(~(end_s <= 0), device, row, np.maximum(start_s, 0.0), end_s)
        open_ended = np.isnan(end_s)
        latest_s = np.full(devices, -np.inf)
        np.maximum.at(latest_s, device, np.nan_to_num(start_s, nan=np.inf))
        wrong = np.isnan(start_s) | (open_ended & ((self.after == "none") | (start_s < latest_s[device])))
        if wrong.any():
            first = int(np.flatnonzero(wrong)[0])
            name = ("start_s", "start") if np.isnan(start_s[first]) else ("end_s", "end")
            table.refuse_cell(table.called(*name), int(row[first]), "times; the last end of a device may be left out")
        table.note(int(open_ended.sum()), "intervals have no end: they last to the end of the period")
        return Intervals.of(device, start_s, np.where(open_ended, period[device], end_s), period, table.where)


class TraceAvailability(OnOffProcess):
    def __init__(
        self,
        intervals: Intervals,
        device: IntArray,
        checked: Literal["whole-task", "end-point"] = "whole-task",
    ) -> None:
        super().__init__(device.size)
        self._intervals, self._device, self._checked = intervals, device, checked

    def look_up(self, client: IntArray, time_s: float) -> tuple[BoolArray, FloatArray]:
        data = self._intervals
        low, high, period, now = self._phase(client, time_s)
        began_s = _began_s(time_s, period)
        if not data.start_s.size:
            return np.zeros(low.size, dtype=np.bool_), np.full(low.size, np.inf)
        empty = low == high
        at = low + count_until(data.start_s, low, high, now)
        last = at - 1  # of any other device where `at` is `low`, and then without effect
        on = (at > low) & (now < data.end_s[last])
        first = np.minimum(low, data.start_s.size - 1)
        # An interval up to the end of the period goes on in the next one if that begins with an interval.
        wraps = (data.end_s[last] == period) & (data.start_s[first] == 0.0)
        whole = wraps & (last == first)
        leaves_s = data.end_s[last] + np.where(wraps, data.end_s[first], 0.0)
        following = np.where(
            at < high, data.start_s[np.minimum(at, data.start_s.size - 1)], period + data.start_s[first]
        )
        until_s = began_s + np.where(on, np.where(whole, np.inf, leaves_s), np.where(empty, np.inf, following))
        return np.asarray(on), np.asarray(until_s)

    def leaves_after_s(self, client: IntArray, time_s: float, draw: int, task_s: FloatArray) -> FloatArray:
        """Return the seconds until each client leaves or, checked at the end point, leaves for good."""
        if self._checked == "whole-task":
            return super().leaves_after_s(client, time_s, draw, task_s)
        done = np.isfinite(task_s)
        away_s = np.where(done, self._away_s(client, time_s + np.where(done, task_s, 0.0)), 0.0)
        return np.where(away_s > 0, np.maximum(task_s - away_s, 0.0), np.inf)

    def _away_s(self, client: IntArray, time_s: FloatArray) -> FloatArray:
        """Return the seconds for which each client has been offline; 0 where it is online, interval ends included."""
        data = self._intervals
        low, high, period, now = self._phase(client, time_s)
        at = low + count_until(data.start_s, low, high, now)
        last = np.where(at > low, at, high) - 1
        gone_s = now - data.end_s[last] + np.where(at > low, 0.0, period)
        return np.asarray(np.where(high > low, np.maximum(gone_s, 0.0), np.inf))

    def _phase(self, client: IntArray, time_s: float | FloatArray) -> tuple[IntArray, IntArray, FloatArray, FloatArray]:
        """Return each client's slice of the intervals, its period and the time since the period's start."""
        device = self._device[client]
        period = self._intervals.period_s[device]
        now = np.asarray(time_s - _began_s(time_s, period))
        return self._intervals.offset[device], self._intervals.offset[device + 1], period, now


def _began_s(time_s: float | FloatArray, period_s: FloatArray) -> FloatArray:
    """Return the start of the period in which an instant lies; an infinite one begins at 0."""
    return np.asarray(np.floor(time_s / period_s) * np.where(np.isinf(period_s), 0.0, period_s))
