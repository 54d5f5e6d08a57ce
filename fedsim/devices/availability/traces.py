"""Measured availability: the online intervals of devices, repeated with each device's own period.

Streams: ``trace-availability`` by client, for a random mapping of clients to devices.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fedsim.arrays import BoolArray, FloatArray, IntArray
from fedsim.devices.availability.on_off import OnOffProcess, count_until
from fedsim.errors import DataError
from fedsim.inputs.bounds import check_column
from fedsim.registry import Component
from fedsim.streams import Streams
from fedsim.traces import PICKLES, Assignment, entries_of, read_columns, read_pickle
from fedsim.units import SECONDS, Positive, Seconds


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
    def of(cls, device: ArrayLike, start_s: ArrayLike, end_s: ArrayLike, period_s: ArrayLike) -> "Intervals":
        """Return intervals given in any order, sorted and cut at the period; those that overlap or touch become one."""
        period = np.asarray(period_s, dtype=np.float64)
        owner, start, end = np.asarray(device, dtype=np.int64), np.asarray(start_s, float), np.asarray(end_s, float)
        if not period.size or not np.all((period > 0) & np.isfinite(period)):
            raise DataError("every device needs a period above 0 s")
        if owner.size and not (owner.min() >= 0 and owner.max() < period.size):
            raise DataError(f"devices are numbered from 0 to {period.size - 1}")
        if not np.all((start >= 0) & np.isfinite(start) & np.isfinite(end)):
            raise DataError("starts and ends of intervals must be finite numbers of at least 0 s")
        for name, times_s in (("start_s", start), ("end_s", end), ("period_s", period)):
            check_column(times_s, name, SECONDS, "intervals", DataError)
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
    """Return the intervals of a file; ``period_s`` comes before the periods that the file states."""
    try:
        if Path(path).suffix in PICKLES:
            return _from_behaviour(read_pickle(path))
        return _from_columns(read_columns(path), period_s)
    except DataError as error:
        raise error if str(error).startswith(str(path)) else DataError(f"{path}: {error}") from None
    except KeyError as error:
        raise DataError(f"{path}: there is no column {error}") from None
    except (TypeError, ValueError, AttributeError, IndexError, OverflowError, MemoryError) as error:
        raise DataError(f"{path}: does not hold intervals: {error}") from None


def _from_behaviour(trace: Any) -> Intervals:
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
    return Intervals.of(owner, np.concatenate([[], *active]), np.concatenate([[], *inactive]), period)


def _from_columns(columns: Mapping[str, NDArray[Any]], period_s: float | None) -> Intervals:
    if "offset" in columns:
        counts = np.diff(columns["offset"])
        if counts.dtype.kind not in "iu" or np.any(counts < 0) or counts.sum() != columns["start_s"].size:
            raise DataError("offset must be whole numbers that rise from 0 to the number of intervals")
        device = np.repeat(np.arange(counts.size), counts)
        period: NDArray[Any] = columns["period_s"] if period_s is None else np.full(counts.size, period_s)
    else:
        names, first, device = np.unique(columns["device"], return_index=True, return_inverse=True)
        period = columns["period_s"][first] if period_s is None else np.full(names.size, period_s)
        if period_s is None and np.any(columns["period_s"] != period[device]):
            raise DataError("a device has two periods")
    return Intervals.of(device, columns["start_s"], columns["end_s"], period)


class Traces(Component):
    """Intervals from a file: each client follows one device, with the device's period, from the start of the run.

    FedScale (Lai et al., "FedScale: Benchmarking model and system performance of federated learning at scale",
    ICML 2022) asks only whether a client is online when its task ends: a client that leaves and returns in between
    counts as if it had stayed. Its code moves a pointer through the intervals by one step for each call, so that
    its results depend on earlier calls; here they are found by bisection. Its intervals include
    their ends; so does the end of a task here, while a client whose interval ends right now is no candidate.

    Attributes
    ----------
    path : file, see `read_intervals`
    mapping : how clients get their devices, ``"random"`` or ``"sequential"``, see `fedsim.traces.entries_of`
    checked : ``"whole-task"``, a client that leaves drops out at that instant; or ``"end-point"``, one that is
        offline when its task would end drops out at the instant at which it left for the last time before
    period_s : period of every device, for tables without that column
    """

    may_leave: ClassVar[bool] = True

    path: str
    mapping: Assignment = "random"
    checked: Literal["whole-task", "end-point"] = "whole-task"
    period_s: Positive[Seconds] | None = None

    def build(self, clients: int, streams: Streams) -> "TraceAvailability":
        intervals = read_intervals(self.path, self.period_s)
        device = entries_of(clients, intervals.devices, self.mapping, "trace-availability", streams)
        return TraceAvailability(intervals, device, self.checked)


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
        began_s = np.floor(time_s / period) * period
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
        now = np.asarray(time_s - np.floor(time_s / period) * period)
        return self._intervals.offset[device], self._intervals.offset[device + 1], period, now
