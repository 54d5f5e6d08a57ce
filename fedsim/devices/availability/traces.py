"""Measured availability: the online intervals of devices, repeated with each device's own period.

Streams: ``trace-availability`` by client, for a random mapping of clients to devices.
"""

from typing import ClassVar, Final, Literal

import numpy as np

from fedsim.arrays import BoolArray, FloatArray, IntArray, count_until
from fedsim.devices.availability.on_off import OnOffProcess
from fedsim.inputs.paths import InputPath
from fedsim.inputs.tables import IDS, After, Intervals, Origin, Table, identified, owned, read_spans
from fedsim.registry import Component
from fedsim.run_setup import RunSetup
from fedsim.traces import Mapped, entries_of
from fedsim.units import Positive, Seconds

_FIELD: Final = "devices.availability.path"


class Traces(Component):
    """Intervals from a file: each client follows one device, with the device's period, from the start of the run.

    FedScale (Lai et al., "FedScale: Benchmarking model and system performance of federated learning at scale",
    ICML 2022) asks only whether a client is online when its task ends: a client that leaves and returns in between
    counts as if it had stayed. Its code moves a pointer through the intervals by one step for each call, so that
    its results depend on earlier calls; here they are found by bisection. Its intervals include
    their ends; so does the end of a task here, while a client whose interval ends right now is no candidate.

    Attributes
    ----------
    path : a table with the columns ``device`` (or ``client``), ``start_s``, ``end_s`` and ``period_s``, FedScale's
        pickle, FLASH's states or cache (JSON; CSV with ``guid``, ``time``, ``state``), contact events, or a table of
        places over time, whose rows say when a client is there
        Times may be dates, seconds since 1970, or hours such as ``22:00``.
    mapping : how clients get their devices: ``"random"``, ``"sequential"`` in the order of numbers or of first rows,
        or ``"id"``, each client the rows of its own id; by default ``"id"`` where the column is called ``client`` or
        ``id``, and ``"random"`` where it is called ``device``
    checked : ``"whole-task"``, a client that leaves drops out at that instant; or ``"end-point"``, one that is
        offline when its task would end drops out at the instant at which it left for the last time before
    period_s : period of every device, for tables without that column
    after : ``"repeat"``: intervals repeat after the period; ``"none"``: a client is away after its last interval;
        ``"hold"``: as ``"none"``, and a last interval without an end lasts for ever, as does one of places up to the
        last row
    origin : instant of the file at which the run begins, a number or a date; by default 0, or the first date
    contact_with : node of a file of contact events (lines ``TIME CONN a b up`` and ``down``) whose contacts count; by
        default those with any node
    """

    may_leave: ClassVar[bool] = True

    path: InputPath
    mapping: Mapped = None
    checked: Literal["whole-task", "end-point"] = "whole-task"
    period_s: Positive[Seconds] | None = None
    after: After = "repeat"
    origin: Origin = None
    contact_with: str | None = None

    def build(self, run: RunSetup) -> "TraceAvailability":
        intervals, mapping = self.intervals(run.clients)
        device = np.arange(run.clients)
        if mapping is not None and mapping != "id":
            device = entries_of(run.clients, intervals.devices, mapping, "trace-availability", run.streams)
        return TraceAvailability(intervals, device, self.checked)

    def intervals(self, clients: int | None = None) -> tuple[Intervals, Mapped]:
        """Return the intervals of devices, or of K clients where rows are theirs by id, and how clients get them."""
        table = Table.read(self.path, _FIELD, self.contact_with)
        by_id = clients is not None and table.find("client", "id") is not None
        mapping = self.mapping or ("id" if by_id else "random")
        return self._of_table(table, clients if mapping == "id" else None), mapping

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
        return read_spans(table, row, device, devices, period_s=self.period_s, after=self.after, origin=self.origin)


class TraceAvailability(OnOffProcess):
    def __init__(
        self, intervals: Intervals, device: IntArray, checked: Literal["whole-task", "end-point"] = "whole-task"
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
