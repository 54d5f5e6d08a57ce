"""Measurements of phones as published: states of FLASH (JSON, CSV), throughput of MobiPerf, devices of FedScale.

A phone of FLASH is there while it is locked, charging and on WiFi, and repeats its own time from its first message to
its last one; its cache of sessions is read too.
"""

import json
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import chain
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fedsim.errors import DataError
from fedsim.inputs.arrow import Columns, as_texts, texts_of
from fedsim.inputs.tables.reading import counted, note

Message = tuple[str, str]
"""Instant and state."""
_CHANGES: Final = {
    "screen_lock": (0, True),
    "screen_unlock": (0, False),
    "battery_charged_on": (1, True),
    "battery_charged_off": (1, False),
    "wifi": (2, True),
    **dict.fromkeys(("unknown", "2g", "3g", "4g", "5g"), (2, False)),
    **dict.fromkeys(("screen_on", "screen_off"), (3, True)),
}
"""What each state changes: locked, charging, on WiFi, and the screen, which does not count."""
_CACHE_BEGINS: Final = datetime(2020, 1, 2, tzinfo=UTC)
"""The instant from which FLASH's cache counts seconds."""
_IDS: Final = ("guid", "client", "device", "id")
_SPEEDS: Final = ("computation", "communication")
_SPANS: Final = ("device", "start", "end", "period_s")
_NO_SESSION: Final = ("", "", "")
_STATES: Final = "'2020-01-28 00:00:00', a tab and a state, such as wifi, 4g, screen_lock or 80%"


def of_json(content: bytes, where: str) -> Columns:
    """Return the columns of a file of JSON."""
    try:
        found = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise DataError(f"cannot be read: it is no JSON: {error}") from None
    entries = list(found.values()) if isinstance(found, dict) else found
    if isinstance(entries, list) and entries and all(isinstance(entry, dict) for entry in entries):
        if all("messages" in entry for entry in entries):
            named = found.items() if isinstance(found, dict) else enumerate(entries)
            texts = [(str(entry.get("guid", name)), str(entry["messages"])) for name, entry in named]
            return _sessions([(guid, _lines(text, guid)) for guid, text in texts], where)
        if isinstance(found, dict) and all("ready_time" in entry for entry in entries):
            return _cached(found, where)
        if any(_speeds(entry) is not None for entry in entries):
            return _throughput(entries, where)
    raise DataError("is JSON of no known layout; allowed: FLASH (messages or ready_time), MobiPerf (tcp_speed_results)")


def of_states(columns: dict[str, pa.ChunkedArray], where: str) -> Columns:
    """Return the spans of FLASH's states in a table; columns of another table as they are."""
    names = {name.lower(): name for name in columns}
    guid, time = (next((names[one] for one in some if one in names), "") for some in (_IDS, ("time", "timestamp")))
    state = names.get("state", "")

    def cells(name: str) -> list[str]:
        return [cell or "" for cell in as_texts(columns[name]).to_pylist()]

    if guid and "messages" in names:
        rows = zip(cells(guid), cells(names["messages"]), strict=True)
        return _sessions([(name, _lines(text, name)) for name, text in rows], where)
    if not (guid and time and state) or not any(map(_is_state, set(cells(state)))):
        return columns
    devices: dict[str, list[Message]] = {}
    for number, (name, instant, told) in enumerate(zip(*map(cells, (guid, time, state)), strict=True), 1):
        if not _is_state(told):
            raise DataError(f"{state}, row {number}: {told!r} is not allowed; allowed: states of FLASH")
        devices.setdefault(name, []).append((instant, told))
    return _sessions(devices.items(), where)


def _lines(text: str, guid: str) -> Iterator[Message]:
    for line in text.replace("\0", "").splitlines():
        instant, _, state = (part.strip() for part in line.partition("\t"))
        if line.strip():
            if not _is_state(state):
                raise DataError(f"device {guid}: {line.strip()[:60]!r} is not allowed; allowed: {_STATES}")
            yield instant, state


def _is_state(state: str) -> bool:
    return state.lower() in _CHANGES or (state.endswith("%") and state[:-1].replace(".", "", 1).isdigit())


def _sessions(devices: Iterable[tuple[str, Iterable[Message]]], where: str) -> Columns:
    rows: list[tuple[str, ...]] = []
    moved, open_ended, seen = 0, 0, _CACHE_BEGINS.isoformat()
    for guid, found in devices:
        messages = list(found)
        seen = messages[0][0] if messages else seen
        times = [_date(instant, guid) for instant, _ in messages]
        if len({one.tzinfo is None for one in times}) > 1:
            raise DataError(f"device {guid}: some instants have a zone and others none; allowed: all or none of them")
        order = sorted(range(len(times)), key=times.__getitem__)
        moved += sum(place != at for place, at in enumerate(order))
        period = (times[order[-1]] - times[order[0]]).total_seconds() if order else 0.0
        holds, begun = [False] * 4, ""
        before = len(rows)
        for at in order:
            instant, state = messages[at]
            place, value = _CHANGES.get(state.lower(), (3, True))
            holds[place] = value
            ready = all(holds[:3])
            if begun and not ready:
                rows.append((guid, begun, instant, str(period)))
            begun = (begun or instant) if ready else ""
        if begun and begun != messages[order[-1]][0]:
            open_ended += 1
            rows.append((guid, begun, messages[order[-1]][0], str(period)))
        rows += [(guid, *_NO_SESSION)] if len(rows) == before else []
    counted(where, moved, "messages come before the one above them: messages are sorted")
    counted(where, open_ended, "sessions go on at the last message of a device: they end there, and FLASH omits them")
    return _of_sessions(rows, where, "devices are never locked, charging and on WiFi", seen)


def _cached(found: dict[str, dict[str, Any]], where: str) -> Columns:
    rows: list[tuple[str, ...]] = []
    for guid, entry in found.items():
        try:
            spans = [(float(start), float(end)) for start, end in entry["ready_time"]] if entry["isSuccess"] else []
            period_s = float(entry["trace_end"]) - float(entry["trace_start"]) if spans else 0.0
            times = [[(_CACHE_BEGINS + timedelta(seconds=one)).isoformat() for one in span] for span in spans]
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise DataError(
                f"device {guid}: no numbers in isSuccess, trace_start, trace_end, ready_time: {error}"
            ) from None
        rows += [(guid, *span, str(period_s)) for span in times] or [(guid, *_NO_SESSION)]
    return _of_sessions(rows, where, "devices have no session", _CACHE_BEGINS.isoformat())


def _of_sessions(rows: list[tuple[str, ...]], where: str, without: str, seen: str) -> Columns:
    """Return the columns of sessions; a device without one keeps its place, and does not move the first session."""
    begin = min((start for _, start, *_ in rows if start), default=seen)
    counted(where, sum(not start for _, start, *_ in rows), without)
    return as_columns(_SPANS, [row if row[1] else (row[0], begin, begin, "1.0") for row in rows])


def _date(text: str, guid: str) -> datetime:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise DataError(f"device {guid}: {text[:60]!r} is not allowed; allowed: {_STATES}") from None


def _speeds(entry: dict[str, Any]) -> Any:
    values = entry.get("values")
    return entry.get("tcp_speed_results", values.get("tcp_speed_results") if isinstance(values, dict) else None)


def _throughput(entries: list[dict[str, Any]], where: str) -> Columns:
    """Return a row for each sample of a measurement, the downlink's and the uplink's in columns of their own."""
    rows: list[tuple[str, ...]] = []
    others = failed = 0
    for number, entry in enumerate(entries, 1):
        speeds = _speeds(entry)
        if speeds is None or str(entry.get("success", True)).lower() == "false":
            others, failed = others + (speeds is None), failed + (speeds is not None)
            continue
        stated = entry.get("parameters")
        stated = stated if isinstance(stated, dict) else {}
        up = str(stated.get("dir_up", "")).lower()
        try:
            samples = [float(one) for one in (json.loads(speeds) if isinstance(speeds, str) else speeds)]
            step_s = float(stated.get("sample_period_sec") or float(stated.get("sample_period_ms") or 1000.0) / 1e3)
        except (TypeError, ValueError):
            raise DataError(
                f"measurement {number}: tcp_speed_results are {str(speeds)[:60]}; allowed: numbers in kbit/s"
            ) from None
        for place, sample in enumerate(samples):
            ways = (str(sample) if up == "false" else "", str(sample) if up == "true" else "")
            rows.append((str(number), str(place * step_s), "" if up else str(sample), *ways))
    counted(where, others, "measurements not used: they are of no throughput")
    counted(where, failed, "measurements failed")
    note(where, "MobiPerf sorts the samples of a measurement: a rate lasts as long as it did, at another time")
    names = ("device", "time_s", "rate_kbps", "down_kbps", "up_kbps")
    columns = as_columns(names, rows)
    return {name: cells for name, cells in columns.items() if name in names[:2] or any(map(len, cells.to_pylist()))}


def of_pickle(found: object) -> dict[str, NDArray[Any]]:
    """Return the columns of FedScale's devices; a last start without an end lasts to the end of the device's period."""
    rows = list(found.values()) if isinstance(found, dict) else []
    if not rows or not all(isinstance(row, dict) for row in rows):
        raise DataError("is a pickle of no known layout; allowed: a dictionary of FedScale's devices")
    try:
        if "active" not in rows[0]:
            return {name: np.array([row[name] for row in rows], dtype=np.float64) for name in _SPEEDS}
        period = np.array([row["finish_time"] for row in rows], dtype=np.float64)
        open_ended = [len(row["active"]) - len(row["inactive"]) for row in rows]
        if min(open_ended) < 0:
            raise DataError("a device has more ends (inactive) than starts (active)")
        ends = [[*row["inactive"], *[row["finish_time"]] * more] for row, more in zip(rows, open_ended, strict=True)]
        start, end = (np.array(list(chain(*of)), np.float64) for of in ([row["active"] for row in rows], ends))
        return {"offset": np.cumsum([0, *map(len, ends)]), "start_s": start, "end_s": end, "period_s": period}
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        needed = f"numbers in {' and '.join(_SPEEDS)}, or in active, inactive and finish_time"
        raise DataError(f"each of FedScale's devices has {needed}: {error}") from None


def as_columns(names: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> dict[str, pa.StringArray]:
    columns = list(zip(*rows, strict=True)) or [()] * len(names)
    return {name: texts_of(cells) for name, cells in zip(names, columns, strict=True)}
