"""Sentences with the numbers of the tables: why a row loses, or what to know of it."""

import math
import tomllib
from collections import defaultdict
from collections.abc import Sequence
from functools import cache
from types import SimpleNamespace
from typing import Final

from selector_tables.methods import EVIDENCE, HERE, TABLES, methods
from selector_tables.rows import Row

PERCENT: Final = ("final_accuracy", "empty", "wasted", "clients")
"""Shares, from 0 to 1 in a row and in per cent in a sentence."""


@cache
def reasons() -> dict[tuple[str, str], str]:
    """Return the sentences by table and method, with places for numbers."""
    sentences = tomllib.loads((HERE / "reasons.toml").read_text(encoding="utf-8"))["sentence"]
    found = [(table, name, one["text"]) for one in sentences for table in TABLES for name in one.get(table, ())]
    return {(table, name): text.replace("KIND", methods()[name].kind) for table, name, text in found}


def said(rows: Sequence[Row]) -> dict[tuple[str, str], str]:
    """Return the sentences of the rows that there are, by table and method; numbers of other rows are NaN."""
    none = SimpleNamespace(**dict.fromkeys(rows[0], math.nan))
    facts: dict[str, dict[str, SimpleNamespace]] = {table: defaultdict(lambda: none) for table in TABLES}
    for row in rows:
        facts[row["table"]][row["method"]] = SimpleNamespace(**row | {name: 100 * row[name] for name in PERCENT})
    found = {}
    for row in rows:
        of, key = facts[row["table"]], (row["table"], row["method"])
        if key in reasons():
            own, its = of[row["method"]], of[row["beside"]]
            found[key] = reasons()[key].format(own=own, its=its, of=of, open=facts["open"])
    return found


def unexplained(rows: Sequence[Row]) -> list[str]:
    """Return the rows that lose without a sentence that says why, but for those that are evidence for others."""
    lost = [(row["table"], row["method"]) for row in rows if row["verdict"] == "loses"]
    return [": ".join(key) for key in lost if not key[1].endswith(EVIDENCE) and key not in reasons()]
