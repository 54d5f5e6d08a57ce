"""Files in layouts of their own that stand for tables: contact events, and floating car data of SUMO.

Contact events have lines ``TIME CONN a b up`` and ``TIME CONN a b down``: a row ``client, start_s, end_s`` for each end
of a contact. Floating car data are the XML or the CSV of SUMO's ``--fcd-output``: a row ``client, time_s, x_m, y_m``
for each vehicle and step; a step without vehicles has none.
"""

import io
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final
from xml.etree import ElementTree

from fedsim.errors import DataError, suggest
from fedsim.inputs.tables.reading import note

if TYPE_CHECKING:
    import pyarrow as pa

_EVENTS: Final = re.compile(rb"\A\s*[\d.eE+-]+[ \t]+CONN[ \t]")
_CARS: Final = re.compile(rb"\A(\xef\xbb\xbf)?\s*<\?xml.*?<fcd-export|\A\s*<fcd-export", re.DOTALL)
CAR_COLUMNS: Final = {"vehicle_id": "client", "timestep_time": "time_s", "vehicle_x": "x_m", "vehicle_y": "y_m"}
"""Columns of SUMO's CSV and those that they stand for."""


def published(content: bytes, contact_with: str | None, where: str) -> "dict[str, pa.ChunkedArray] | None":
    """Return the columns of a file in one of these layouts; None for another file."""
    if _EVENTS.match(content):
        return _contacts(content, contact_with, where)
    if contact_with is not None:
        raise DataError("contact_with is given, and the file has no contact events; allowed: lines TIME CONN a b up")
    return _cars(content) if _CARS.match(content[:4096]) else None


def without_empty_steps(columns: "dict[str, pa.ChunkedArray]") -> "dict[str, pa.ChunkedArray]":
    """Return the columns of a CSV of SUMO under the names that they stand for; other columns as they are."""
    import pyarrow.compute as pc

    if not CAR_COLUMNS.keys() <= columns.keys():
        return columns
    there = pc.greater(pc.utf8_length(columns["vehicle_id"]), 0)
    return {CAR_COLUMNS.get(name, name): values.filter(there) for name, values in columns.items()}


def _contacts(content: bytes, contact_with: str | None, where: str) -> "dict[str, pa.ChunkedArray]":
    begun: dict[tuple[str, str], str] = {}
    spans: list[tuple[str, str, str, str]] = []
    unseen = 0
    for number, line in enumerate(content.decode("utf-8", "replace").splitlines(), 1):
        words = line.split()
        if not words:
            continue
        if len(words) != 5 or words[1] != "CONN" or words[4] not in ("up", "down"):
            raise DataError(f"line {number}: {line[:60]!r} is not allowed; allowed: TIME CONN a b up, or down")
        time_s, pair = words[0], (min(words[2:4]), max(words[2:4]))
        if words[4] == "up":
            begun.setdefault(pair, time_s)
        else:
            unseen += pair not in begun
            spans.append((*pair, begun.pop(pair, "0"), time_s))
    if unseen:
        note(f"{where}: {unseen:,} contacts have no begin: they last from 0 s on")
    spans += [(*pair, time_s, "") for pair, time_s in begun.items()]
    nodes = {node for span in spans for node in span[:2]}
    if contact_with is not None and contact_with not in nodes:
        some = ", ".join(sorted(nodes)[:5])
        raise DataError(f"contact_with: there is no node {contact_with!r}{suggest(contact_with, nodes)}; nodes: {some}")
    ends = [(one, other, *times) for one, other, *times in spans] + [
        (other, one, *times) for one, other, *times in spans
    ]
    rows = [(one, *times) for one, other, *times in ends if contact_with in (None, other)]
    return _texts(("client", "start_s", "end_s"), rows)


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
                rows.append((element.get("id", ""), time_s, element.get("x", ""), element.get("y", "")))
                element.clear()
    except ElementTree.ParseError as error:
        raise DataError(f"cannot be read: it is no XML: {error}") from None
    return _texts(("client", "time_s", "x_m", "y_m"), rows)


def _texts(names: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> "dict[str, pa.ChunkedArray]":
    import pyarrow as pa

    columns = list(zip(*rows, strict=True)) or [()] * len(names)
    return {name: pa.chunked_array([list(cells)], pa.string()) for name, cells in zip(names, columns, strict=True)}
