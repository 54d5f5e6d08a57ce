"""Files in layouts of their own that stand for tables: contact events, movements of ns-2, floating car data of SUMO.

Contacts give a row ``client, start_s, end_s`` for each end of one; car data a row ``client, time_s, x_m, y_m`` for each
vehicle and step, with ``last_step_s``; movements such a row for each place at which a node begins, turns or stops.
"""

import math
import re
from collections.abc import Mapping, Sequence
from itertools import chain
from operator import itemgetter
from typing import Final
from xml.parsers import expat

import numpy as np
import pyarrow as pa

from fedsim.errors import DataError, suggest
from fedsim.inputs.arrow import Columns, as_texts, known_of, texts_of
from fedsim.inputs.tables.phones import of_json, of_states
from fedsim.inputs.tables.reading import counted

_N: Final = r"(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
_EVENTS: Final = re.compile(rb"(?m)^[ \t]*[\d.eE+-]+[ \t]+CONN[ \t]")
"""A line of a contact, among the first ones of a file."""
_EVENT: Final = rf"(?i)(?P<at>{_N})\s+CONN\s+(?P<one>[^\s#]+)\s+(?P<other>[^\s#]+)\s+(?P<change>up|down)"
_MOVES: Final = re.compile(rb"\A(\s*#[^\n]*\n|\s)*\$(node_\(|ns_\s+at)")
_NODE: Final = r"\$node_\((?P<node>[^)\s#]+)\)"
_PLACE: Final = rf"{_NODE}\s+set\s+(?P<axis>[XYZ])_\s+(?P<place>[+-]?{_N})"
_GOAL: Final = rf'"{_NODE}\s+setdest\s+(?P<x>[+-]?{_N})\s+(?P<y>[+-]?{_N})\s+(?P<speed>{_N})"'
_ORDER: Final = rf"\$ns_\s+at\s+(?P<at>{_N})\s+{_GOAL}"
_OF_NO_NODE: Final = re.compile(r'|(\$ns_ at \S+ ")?\$god_ set-dist .*|set god_ .*|.*create-god.*')
_JSON: Final = re.compile(rb"\A\s*[\[{]")
CARS: Final = re.compile(rb"\A(?:\xef\xbb\xbf)?\s*<(?:[?!].*?<)?fcd-export", re.DOTALL)
"""How the XML of SUMO begins, behind a comment with its settings."""
HEAD: Final = 1 << 16
"""Bytes of a file that tell its layout."""
CAR_COLUMNS: Final = {"vehicle_id": "client", "timestep_time": "time_s", "vehicle_x": "x_m", "vehicle_y": "y_m"}
"""Columns of SUMO's CSV and those that they stand for."""
SPEED: Final = "speed_m_per_s"
LAST_STEP: Final = "last_step_s"
"""Column of floating car data: the last instant of the file, with vehicles or without."""


def published(content: bytes, contact_with: str | None, where: str) -> Columns | None:
    """Return the columns of a file in one of these layouts; None for another file."""
    if _EVENTS.search(content[:HEAD]):
        return _contacts(content, contact_with, where)
    if contact_with is not None:
        raise DataError("contact_with is given, and the file has no contact events; allowed: lines TIME CONN a b up")
    if _MOVES.match(content):
        return _moves(content)
    if _JSON.match(content):
        return of_json(content, where)
    if CARS.match(content[:HEAD]):
        return _cars(content)
    if content.lstrip().startswith(b"<"):
        raise DataError("is XML of no known layout; allowed: floating car data of SUMO (fcd-export)")
    return None


def of_columns(columns: dict[str, pa.ChunkedArray], where: str) -> Columns:
    """Return the columns of SUMO's or FLASH's tables; those of another table as they are."""
    import pyarrow.compute as pc

    if not CAR_COLUMNS.keys() <= columns.keys():
        return of_states(columns, where)
    columns = {**columns, "vehicle_id": as_texts(columns["vehicle_id"])}
    for name in ("id", "x", "y", "speed"):
        both = [as_texts(columns[one]) for one in (f"person_{name}", f"vehicle_{name}") if one in columns]
        columns = {**columns, f"vehicle_{name}": pc.coalesce(*both)} if len(both) > 1 else columns
    times = columns["timestep_time"]
    there = pc.is_valid(columns["vehicle_id"])
    names = {**CAR_COLUMNS, "vehicle_speed": SPEED}
    cars = {names.get(name, name): values.filter(there) for name, values in columns.items()}
    last = str(times[len(times) - 1].as_py()) if len(times) else ""
    return {**cars, LAST_STEP: texts_of([last] * len(cars["client"]))}


def _matched(content: bytes, allowed: str, *patterns: str) -> list[list[list[str]]]:
    """Return the groups of patterns in the lines that they fit, refusing other lines; comments are left out."""
    import pyarrow.compute as pc

    lines = texts_of(content.decode("utf-8", "replace").splitlines())
    found = [pc.extract_regex(lines, rf"^\s*{pattern}\s*(?:#.*)?$") for pattern in patterns]
    for number in np.flatnonzero(~np.any([known_of(one) for one in found], axis=0)).tolist():
        text = " ".join(lines[number].as_py().partition("#")[0].split())
        if not _OF_NO_NODE.fullmatch(text):
            raise DataError(f"line {number + 1}: {text[:60]!r} is not allowed; allowed: {allowed}")
    return [[group.to_pylist() for group in one.drop_null().flatten()] for one in found]


def _contacts(content: bytes, contact_with: str | None, where: str) -> Columns:
    begun: dict[tuple[str, str], float | None] = {}
    renewed: dict[tuple[str, str], float] = {}
    spans: list[tuple[str, str, float, float]] = []
    unseen = again = 0
    [[times, ones, others, changes]] = _matched(content, "TIME CONN a b up, or down", _EVENT)
    events = zip(map(float, times), ones, others, changes, strict=True)
    for time_s, one, other, change in sorted(events, key=itemgetter(0)):
        pair = (one, other) if one < other else (other, one)
        since_s, up = begun.get(pair, 0.0), change.lower() == "up"
        if pair in begun and up == (since_s is not None):
            again += 1
            renewed[pair] = time_s
        elif up:
            begun[pair] = time_s
        else:
            unseen += pair not in begun
            spans.append((*pair, since_s or 0.0, time_s))
            # An end may follow the next begin of the same instant.
            begun[pair] = time_s if renewed.get(pair) == time_s else None
            again -= begun[pair] is not None
    counted(where, unseen, "contacts have no begin: they last from 0 s on")
    counted(where, again, "events not used: a contact is up, or down, already")
    lasting = [(*pair, time_s, math.nan) for pair, time_s in begun.items() if time_s is not None]
    ends: dict[str, list[tuple[float, float]]] = {node: [] for both in zip(ones, others, strict=True) for node in both}
    if contact_with is not None and contact_with not in ends:
        some = ", ".join(sorted(ends)[:5])
        raise DataError(f"contact_with: there is no node {contact_with!r}{suggest(contact_with, ends)}; nodes: {some}")
    for one, other, start_s, end_s in sorted([*spans, *lasting], key=itemgetter(2)):
        for node, peer in ((one, other), (other, one)):
            # What follows a contact that lasts for ever is within it.
            if contact_with in (None, peer) and not (ends[node] and math.isnan(ends[node][-1][1])):
                ends[node].append((start_s, end_s))
    return _of_nodes(ends, "start_s", "end_s")


def _of_nodes(rows: Mapping[str, Sequence[tuple[float, ...]]], *names: str) -> Columns:
    """Return the columns of the rows of each node."""
    client = texts_of(list(chain.from_iterable([node] * len(own) for node, own in rows.items())))
    numbers = np.fromiter(chain.from_iterable(chain.from_iterable(rows.values())), np.float64)
    return {"client": client, **dict(zip(names, numbers.reshape(-1, len(names)).T, strict=True))}


def _moves(content: bytes) -> Columns:
    """Return the places of nodes that head for goals at a speed from an instant on, or until the next such order."""
    places: dict[str, dict[str, float]] = {}
    allowed = '$node_(i) set X_ x and $ns_ at t "$node_(i) setdest x y speed"'
    placed, [times, nodes, *goals] = _matched(content, allowed, _PLACE, _ORDER)
    for node, axis, place in zip(*placed, strict=True):
        places.setdefault(node, {})[axis] = float(place)
    if lost := [node for node in (*places, *nodes) if not {"X", "Y"} <= places.get(node, {}).keys()]:
        raise DataError(f"node {lost[0]} has no place; allowed: set X_ and Y_ of each node")
    ways = {node: [(0.0, place["X"], place["Y"])] for node, place in places.items()}
    orders = zip(map(float, times), nodes, *(map(float, goal) for goal in goals), strict=True)
    # Of two orders of an instant the one that stands below holds.
    for time_s, node, x_m, y_m, speed in sorted(orders, key=itemgetter(0)):
        way = ways[node]
        here = _cut(way, time_s)
        if way[-1] != (time_s, *here):
            way.append((time_s, *here))
        apart_m = math.hypot(x_m - here[0], y_m - here[1])
        if speed > 0 and apart_m > 0:
            way.append((time_s + apart_m / speed, x_m, y_m))
    return _of_nodes(ways, "time_s", "x_m", "y_m")


def _cut(way: list[tuple[float, float, float]], time_s: float) -> tuple[float, float]:
    """Return the place on a way at an instant, and remove what would follow."""
    last_s, x_m, y_m = way[-1]
    if last_s <= time_s:
        return x_m, y_m
    way.pop()
    from_s, from_x_m, from_y_m = way[-1]
    share = (time_s - from_s) / (last_s - from_s)
    return from_x_m + share * (x_m - from_x_m), from_y_m + share * (y_m - from_y_m)


def _cars(content: bytes) -> Columns:
    if b"<!DOCTYPE" in content or b"<!ENTITY" in content:
        raise DataError("is refused: it declares entities; allowed: XML as SUMO writes it")
    cells: list[str] = []
    time_s = ""

    def add(tag: str, attributes: dict[str, str]) -> None:
        nonlocal time_s
        told = attributes.get
        if tag == "timestep":
            time_s = told("time", "")
        elif tag in ("vehicle", "person"):
            cells.extend((told("id", ""), time_s, told("x", ""), told("y", ""), told("speed", "")))

    parser = expat.ParserCreate()
    parser.StartElementHandler = add
    try:
        parser.Parse(content, True)
    except expat.ExpatError as error:
        raise DataError(f"cannot be read: it is no XML: {error}") from None
    names = ("client", "time_s", "x_m", "y_m", SPEED)
    columns = {name: cells[place :: len(names)] for place, name in enumerate(names)}
    columns[LAST_STEP] = [time_s] * len(columns["client"])
    return {name: texts_of(column) for name, column in columns.items()}
