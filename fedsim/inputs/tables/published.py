"""Files in layouts of their own that stand for tables: contact events, movements of ns-2, floating car data of SUMO.

Contacts give a row ``client, start_s, end_s`` for each end of one; car data a row ``client, time_s, x_m, y_m`` for each
vehicle and step, with ``last_step_s``; movements such a row for each place at which a node begins, turns or stops.
"""

import io
import math
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final
from xml.etree import ElementTree

from fedsim.errors import DataError, suggest
from fedsim.inputs.tables.phones import as_columns, of_json, of_states
from fedsim.inputs.tables.reading import counted

if TYPE_CHECKING:
    import pyarrow as pa

_N: Final = r"(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
_EVENTS: Final = re.compile(rb"(?m)^[ \t]*[\d.eE+-]+[ \t]+CONN[ \t]")
"""A line of a contact, among the first ones of a file."""
_EVENT: Final = re.compile(rf"({_N})\s+CONN\s+(\S+)\s+(\S+)\s+(up|down)", re.IGNORECASE)
_MOVES: Final = re.compile(rb"\A(\s*#[^\n]*\n|\s)*\$(node_\(|ns_\s+at)")
_MOVE: Final = re.compile(
    rf"\$node_\((\w+)\)\s+set\s+([XYZ])_\s+([+-]?{_N})|"
    rf'\$ns_\s+at\s+({_N})\s+"\$node_\((\w+)\)\s+setdest\s+([+-]?{_N})\s+([+-]?{_N})\s+({_N})"'
)
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


def published(content: bytes, contact_with: str | None, where: str) -> "dict[str, pa.ChunkedArray] | None":
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


def of_columns(columns: "dict[str, pa.ChunkedArray]", where: str) -> "dict[str, pa.ChunkedArray]":
    """Return the columns of SUMO's or FLASH's tables; those of another table as they are."""
    import pyarrow as pa
    import pyarrow.compute as pc

    from fedsim.inputs.arrow import texts_of

    if not CAR_COLUMNS.keys() <= columns.keys():
        return of_states(columns, where)
    columns = {**columns, "vehicle_id": pc.cast(columns["vehicle_id"], pa.string())}
    if "person_id" in columns:
        walks = pc.fill_null(pc.match_substring_regex(pc.cast(columns["person_id"], pa.string()), "^."), False)
        for name in ("id", "x", "y", "speed"):
            vehicle, person = columns.get(f"vehicle_{name}"), columns.get(f"person_{name}")
            if vehicle is not None and person is not None:
                columns = {**columns, f"vehicle_{name}": pc.if_else(walks, person, vehicle)}
    times = columns["timestep_time"]
    there = pc.match_substring_regex(columns["vehicle_id"], "^.")
    names = {**CAR_COLUMNS, "vehicle_speed": SPEED}
    cars = {names.get(name, name): values.filter(there) for name, values in columns.items()}
    last = str(times[len(times) - 1].as_py()) if len(times) else ""
    return {**cars, LAST_STEP: pa.chunked_array([texts_of([last] * len(cars["client"]))])}


def _matched(content: bytes, allowed: str, pattern: re.Pattern[str]) -> Iterator[tuple[str, ...]]:
    """Yield the groups of a pattern in lines of text, refusing others; comments are left out."""
    for number, line in enumerate(content.decode("utf-8", "replace").splitlines(), 1):
        text = line.partition("#")[0].strip()
        if found := pattern.fullmatch(text):
            yield found.groups()
        elif not _OF_NO_NODE.fullmatch(text := " ".join(text.split())):
            raise DataError(f"line {number}: {text[:60]!r} is not allowed; allowed: {allowed}")


def _contacts(content: bytes, contact_with: str | None, where: str) -> "dict[str, pa.ChunkedArray]":
    begun: dict[tuple[str, str], str | None] = {}
    renewed: dict[tuple[str, str], str] = {}
    spans: list[tuple[str, str, str, str]] = []
    unseen = again = 0
    events = list(_matched(content, "TIME CONN a b up, or down", _EVENT))
    for time_s, one, other, change in sorted(events, key=lambda event: float(event[0])):
        pair = (one, other) if one < other else (other, one)
        since_s, up = begun.get(pair, "0"), change.lower() == "up"
        if pair in begun and up == (since_s is not None):
            again += 1
            renewed[pair] = time_s
        elif up:
            begun[pair] = time_s
        else:
            unseen += pair not in begun
            spans.append((*pair, str(since_s), time_s))
            # An end may follow the next begin of the same instant.
            begun[pair] = time_s if renewed.get(pair) == time_s else None
            again -= begun[pair] is not None
    counted(where, unseen, "contacts have no begin: they last from 0 s on")
    counted(where, again, "events not used: a contact is up, or down, already")
    lasting = [(*pair, time_s, "") for pair, time_s in begun.items() if time_s is not None]
    nodes = dict.fromkeys(node for event in events for node in event[1:3])
    if contact_with is not None and contact_with not in nodes:
        some = ", ".join(sorted(nodes)[:5])
        raise DataError(f"contact_with: there is no node {contact_with!r}{suggest(contact_with, nodes)}; nodes: {some}")
    ends: dict[str, list[tuple[str, str]]] = {node: [] for node in nodes}
    for one, other, *times in sorted([*spans, *lasting], key=lambda span: float(span[2])):
        for node, peer in ((one, other), (other, one)):
            # What follows a contact that lasts for ever is within it.
            if contact_with in (None, peer) and not (ends[node] and not ends[node][-1][1]):
                ends[node].append((times[0], times[1]))
    rows = [(node, *times) for node, several in ends.items() for times in several]
    return as_columns(("client", "start_s", "end_s"), rows)


def _moves(content: bytes) -> "dict[str, pa.ChunkedArray]":
    """Return the places of nodes that head for goals at a speed from an instant on, or until the next such order."""
    places: dict[str, dict[str, float]] = {}
    orders: list[tuple[Any, ...]] = []
    allowed = '$node_(i) set X_ x and $ns_ at t "$node_(i) setdest x y speed"'
    for placed, axis, place, at, node, *goal in _matched(content, allowed, _MOVE):
        if placed:
            places.setdefault(placed, {})[axis] = float(place)
        else:
            orders.append((float(at), node, *map(float, goal)))
    nodes = [*places, *(order[1] for order in orders)]
    if lost := [node for node in nodes if not {"X", "Y"} <= places.get(node, {}).keys()]:
        raise DataError(f"node {lost[0]} has no place; allowed: set X_ and Y_ of each node")
    ways = {node: [(0.0, place["X"], place["Y"])] for node, place in places.items()}
    for time_s, node, x_m, y_m, speed in sorted(orders):
        way = ways[node]
        here = _cut(way, time_s)
        way.append((time_s, *here))
        apart_m = math.hypot(x_m - here[0], y_m - here[1])
        if speed > 0 and apart_m > 0:
            way.append((time_s + apart_m / speed, x_m, y_m))
    rows = [(node, *map(repr, point)) for node, way in ways.items() for point in dict.fromkeys(way)]
    return as_columns(("client", "time_s", "x_m", "y_m"), rows)


def _cut(way: list[tuple[float, float, float]], time_s: float) -> tuple[float, float]:
    """Return the place on a way at an instant, and remove what would follow."""
    last_s, x_m, y_m = way[-1]
    if last_s <= time_s:
        return x_m, y_m
    way.pop()
    from_s, from_x_m, from_y_m = way[-1]
    share = (time_s - from_s) / (last_s - from_s)
    return from_x_m + share * (x_m - from_x_m), from_y_m + share * (y_m - from_y_m)


def _cars(content: bytes) -> "dict[str, pa.ChunkedArray]":
    if b"<!DOCTYPE" in content or b"<!ENTITY" in content:
        raise DataError("is refused: it declares entities; allowed: XML as SUMO writes it")
    rows: list[tuple[str, ...]] = []
    time_s = ""
    try:
        for event, element in ElementTree.iterparse(io.BytesIO(content), ("start", "end")):  # noqa: S314 (no entities)
            if event == "start" and element.tag == "timestep":
                time_s = element.get("time", "")
            elif event == "end" and element.tag in ("vehicle", "person"):
                rows.append((element.get("id", ""), time_s, *(element.get(name, "") for name in ("x", "y", "speed"))))
                element.clear()
    except ElementTree.ParseError as error:
        raise DataError(f"cannot be read: it is no XML: {error}") from None
    names = ("client", "time_s", "x_m", "y_m", SPEED, LAST_STEP)
    return as_columns(names, [(*row, time_s) for row in rows])
