"""Random scenarios from the schema: all kinds beside all others, with values that are allowed, at a bound, or wrong.

The walk is that of `tests.support.scenario_fields`. What makes a run long only because it is asked for, such as many
rounds, stays small or is wrong; everything else may take any value.
"""

import copy
import math
import sys
import typing
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import NoneType
from typing import Any, Final

from fedsim.inputs.bounds import NUMBER
from fedsim.learning import LEARNERS
from fedsim.per_client import PerClient
from fedsim.scenario.sections import ScenarioTables
from fedsim.units import Bound
from tests.support.field_values import BESIDE, OPTIONS, Tables
from tests.support.scenario_fields import (
    declared,
    filled,
    kinds_of,
    literals_of,
    reached,
    stated_bounds,
    table_of,
    with_values,
)
from tests.support.seeded_draws import Seeded

MOST_CLIENTS: Final = 8
MOST_ROUNDS: Final = 3
_WRONG_TEXTS: Final = ("", "x", "no-such-kind", "module:Class", "a\0b", "é" * 200, "[bold]", "1.0")
_WRONG: Final = (
    *(math.nan, math.inf, -math.inf, -1, -1.0, True, 1.5, 2**63, 2**63 - 1, 10**30, -(2**63), 1e308, 5e-324),
    *_WRONG_TEXTS,
    *([], {}, [[]], [1, "x"], {"kind": "none"}, {"kind": 3}, {"kind": "constant", "x": 1}),
)
_SMALL: Final = (0, 1, 2, 3, 5)
_FLOATS: Final = (0.0, 0.01, 0.1, 0.3, 0.5, 0.9, 1.0, 1.5, 2.0, 10.0, 100.0)
_FACTORS: Final = (0.1, 0.5, 0.9, 2.0, 10.0, 1000.0)
_GREAT: Final = (2**31 - 1, 2**31, 10**9, 10**9 + 1)
# Numbers that say how much is computed: great ones are allowed, and take the time that they ask for.
_WORK: Final = frozenset(
    {
        *("count", "clients", "cells", "iterations", "epochs", "steps", "hidden"),
        *("rings", "tries", "basis", "harmonics", "rounds", "buffer"),
    }
)
_MOST_BITS: Final = 1e6
_LEAST_BPS: Final = 1e4
"""Of transfers in a network that is computed again many times a second."""
_MIXES: Final = ((0, 0, 0), (5, 0, 0), (15, 0, 0), (5, 80, 0), (20, 70, 0), (3, 20, 40))
"""Of a hundred fields, how many are touched; of these, how many are at a bound, and wrong."""


@dataclass
class _Walk:
    """One random scenario: of a hundred fields `touched` change, of these `boundary` to a bound and `wrong` to a fault.

    `beside` is what must stand beside the kinds that are chosen, by dotted path.
    """

    draws: Seeded
    touched: int
    boundary: int
    wrong: int
    beside: Tables = field(default_factory=dict)

    def fill(self, owner: Any, table: Tables) -> None:
        for name in declared(owner):
            self.fill_field(owner, table, name)

    def fill_field(self, owner: Any, table: Tables, name: str) -> None:
        annotation, slot = declared(owner)[name]
        bound = stated_bounds(owner)[name]
        inner = table_of(annotation)
        if isinstance(slot, PerClient) and self.draws.chance(80):
            if self.draws.chance(self.touched):
                table[name] = self._value(name, annotation, bound, table.get(name))
        elif slot is not None:
            self._fill_slot(table, name, slot, many=typing.get_origin(annotation) is tuple)
        elif inner is not None:
            if name in table or self.draws.chance(15):
                held = copy.deepcopy(table.get(name, OPTIONS.get(inner.__name__, {})))
                if isinstance(held, dict):
                    self.fill(inner, held)
                table[name] = held
        elif self.draws.chance(self.touched):
            table[name] = self._value(name, annotation, bound, table.get(name))

    def _fill_slot(self, table: Tables, name: str, slot: Any, *, many: bool) -> None:
        stays = name not in table and not self.draws.chance(30)
        if stays or (name in table and self.draws.chance(20)):
            return
        kind = self.draws.pick(sorted(kinds_of(slot)))
        part = copy.deepcopy(filled(slot.registry, kind))
        if isinstance(part, dict) and kind in slot.registry.builtin:
            self.fill(slot.registry.load(kind), part)
        table[name] = [part] if many else part
        if self.draws.chance(90):
            self.beside.update(BESIDE.get(f"{slot.registry.noun} {kind}", {}))
        if self.draws.chance(self.touched * self.wrong // 100):
            table[name] = self.draws.pick(_WRONG)

    def _value(self, name: str, annotation: Any, bound: Bound | None, before: Any) -> Any:
        if self.draws.chance(self.wrong):
            return self.draws.pick(_WRONG)
        if self.draws.chance(self.boundary):
            at = _at_bounds if self.draws.chance(70) else _bounds
            return self.draws.pick(at(name, annotation, bound))
        return self.draws.pick(_allowed(annotation, before))


def _bounds(name: str, annotation: Any, bound: Bound | None) -> Sequence[Any]:
    if _holds(annotation, bool) or not (_holds(annotation, int) or _holds(annotation, float)):
        return _WRONG
    if _holds(annotation, float):
        limits = bound or NUMBER
        near = [limits.least, float(limits.greatest)]
        beside = [step for limit in near for step in (math.nextafter(limit, 0), math.nextafter(limit, math.inf))]
        return [0.0, -0.0, *near, *beside, 1 - 1e-16, 1.0, sys.float_info.epsilon, -near[0], -near[1]]
    most = [] if bound is None else [int(bound.greatest), int(bound.greatest) + 1]
    return [0, 1, -1, 2**63 - 1, *([] if name in _WORK else [*_GREAT, *most])]


def _at_bounds(name: str, annotation: Any, bound: Bound | None) -> Sequence[Any]:
    """Return the smallest and the greatest number that a field may hold by its unit."""
    if not _holds(annotation, float):
        return _bounds(name, annotation, bound)
    limits = bound or NUMBER
    return [limits.least, float(limits.greatest), 1e-3, 1.0, 0.0]


def _allowed(annotation: Any, before: Any) -> Sequence[Any]:
    if words := literals_of(annotation):
        return words
    if _holds(annotation, bool):
        return (True, False)
    if _holds(annotation, float):
        scale = [before * factor for factor in _FACTORS] if isinstance(before, float) else []
        return [*_FLOATS, *scale]
    if _holds(annotation, int):
        return _SMALL
    if isinstance(before, list) and before:
        return [before[:1], before * 2, [*before[1:], before[0]]]
    return [[0.5], [0.5] * MOST_CLIENTS, [1, 2, 3], [[1.0, 2.0]], "one/places.csv", "one/graph.json", "bs-0"]


def _holds(annotation: Any, kind: type) -> bool:
    if annotation is kind:
        return True
    if typing.get_origin(annotation) in (tuple, list):
        return False
    return any(_holds(one, kind) for one in typing.get_args(annotation) if one is not NoneType)


def random_tables(draws: Seeded) -> Tables:
    touched, boundary, wrong = draws.pick(_MIXES)
    walk = _Walk(draws, touched, boundary, wrong)
    clients = 6 if draws.chance(70) else draws.pick(range(1, MOST_CLIENTS + 1))  # some kinds name six clients
    tables: Tables = {
        "name": "random",
        "seed": draws.pick(range(1000)),
        "crowd": {"clients": clients, "placement": {"kind": "disc", "radius_m": 100.0}},
        "learning": _learning(draws),
        "network": {"kind": "pause-two-speed"},
        "devices": {},
        "rounds": {"count": draws.pick(range(1, MOST_ROUNDS + 1)), "policy": _policy(draws)},
        "selector": {"kind": "uniform", "cohort": draws.pick(range(1, clients + 1))},
        "results": {"audit": True},
    }
    if draws.chance(15):
        tables["privacy"] = {
            "budget": {"kind": "geometric", "epsilon": 40.0},
            "mechanism": {"kind": "laplace-coordinate", "delta_f": 0.012},
        }
    for name in ("crowd", "network", "devices", "rounds", "selector", "privacy", "results"):
        if name in tables:
            walk.fill_field(ScenarioTables, tables, name)
    if draws.chance(4 * touched):
        walk.fill(LEARNERS.load(tables["learning"]["kind"]), tables["learning"])
    for path, value in walk.beside.items():
        tables = _set(tables, path, value)
    tables["results"]["audit"] = True
    _shorten_transfers(tables)
    selector = tables["selector"]
    if isinstance(selector, dict) and selector.get("cohort") in range(clients + 1, 100) and draws.chance(90):
        selector["cohort"] = clients
    rounds = tables["rounds"]
    if isinstance(rounds, dict) and "weights" in rounds and draws.chance(80):
        del rounds["weights"]  # many policies and selectors have weights of their own, and refuse others
    return tables


def _shorten_transfers(tables: Tables) -> None:
    """Let transfers end soon where clients move or links fail: each such instant is computed, so days take minutes."""
    network, learning = tables["network"], tables["learning"]
    if not isinstance(network, dict) or not (network.get("mobility") or network.get("trouble")):
        return
    for name in ("topology", "access"):
        _raise_rates(network.get(name))
    if isinstance(bits := learning.get("model_bits"), float) and bits > _MOST_BITS:
        learning["model_bits"] = _MOST_BITS


def _raise_rates(value: Any) -> None:
    """Raise the rates of a table, and of the tables in it, that are above 0 and slow."""
    for inner in value if isinstance(value, list) else ():
        _raise_rates(inner)
    for name, inner in list(value.items()) if isinstance(value, dict) else ():
        slow = isinstance(inner, float) and 0 < inner < _LEAST_BPS
        # The laws of clients' values draw below 1.
        if name.endswith("_bps") and (slow or isinstance(inner, dict)):
            value[name] = _LEAST_BPS
        else:
            _raise_rates(inner)


def _set(tables: Tables, path: str, value: Any) -> Tables:
    """Return tables with a field set, or left out for None, where the tables on its path are there."""
    *way, _ = path.split(".")
    if any(not isinstance(reached(tables, way[:depth]), dict) for depth in range(len(way) + 1)):
        return tables
    return with_values(tables, {path: value})


def _learning(draws: Seeded) -> Tables:
    if draws.chance(4):
        learning = copy.deepcopy(OPTIONS["learner supervised"])
        return {"kind": "supervised", **learning, "data": {"kind": "digits", "train_limit": 120}}
    return {"kind": "none", "model_bits": 1e6, "samples_per_client": 10, "flops_per_sample": 1e6}


def _policy(draws: Seeded) -> Tables:
    return draws.pick([{"kind": "deadline", "deadline_s": 20.0}, {"kind": "k-fastest", "k": 1, "max_wait_s": 50.0}])
