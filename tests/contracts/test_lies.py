"""Lies that follow from the contracts: whatever a kind of answer does not allow is refused by part, member and value.

One lie of each contract and kind of answer in the default tier, all of them in the slow tier. That a run puts the
contract around the part is in `test_lying_parts.py`.
"""

import inspect
import re
from types import SimpleNamespace

import numpy as np
import pytest

from fedsim.answers import Flag, Free, InstanceOf, Mask, Number, Numbers, OneOf, OptionalOf, PartOf
from fedsim.errors import PartError
from tests.support.lies import RAISED
from tests.support.public_names import contracts

THREE = np.zeros(3)
# What is known of a run, and arguments that are no arrays.
KNOWN = {
    "clients": 3,
    **dict.fromkeys(("client", "sites_m"), THREE),
    "layout": SimpleNamespace(initial=THREE),
    "run": SimpleNamespace(clients=3, sites_m=THREE, layout=SimpleNamespace(initial=THREE)),
    "message": SimpleNamespace(numbers=THREE),
    "updates": np.zeros((3, 3)),
    "done": SimpleNamespace(weight=THREE),
}


def no_number(kind):
    """Yield what is no number, or one that is too small or too large."""
    yield from (np.nan, "1", [1.0], True, (x for x in (1,)))
    yield from [] if kind.none else [None]
    yield from beyond(kind)
    if kind.whole:
        yield kind.least + 0.5
    if kind.above:
        yield kind.least


def no_numbers(kind):
    """Yield what is no array of three numbers, and arrays of numbers out of bounds."""
    yield from (None, "fast", (x for x in THREE), THREE.astype(object), THREE * 1j, THREE > 0)
    yield from [] if kind.shape is None else [np.ones(997, kind.dtype), np.ones((2, 2, 2), kind.dtype)]
    yield from (np.full(3, value) for value in [*([] if kind.nan else [np.nan]), *beyond(kind)])


def beyond(kind):
    if kind.least > -np.inf:
        yield -np.inf
    if kind.least > -1e30:
        yield kind.least - 1
    if not kind.infinite:
        yield np.inf
    if kind.most < 2**62:
        yield from (2**62, kind.most + 1)


def values(kind):
    if isinstance(kind, OptionalOf):
        yield from (value for value in values(kind.kind) if value is not None)
    elif isinstance(kind, Number):
        yield from no_number(kind)
    elif isinstance(kind, Numbers):
        yield from no_numbers(kind)
    elif isinstance(kind, Mask):
        yield from (None, THREE, np.ones(997, bool), [True] * 3)
    elif isinstance(kind, Flag):
        yield from (None, 1, "yes")
    elif not isinstance(kind, Free):
        yield SimpleNamespace()
        if isinstance(kind, InstanceOf | PartOf | OneOf) and not getattr(kind, "none", False):
            yield None


def lies(noun):
    """Yield member, kind of answer, act and value of each lie of a contract."""
    for member, kind in CONTRACTS[noun].members.items():
        yield from ((member, type(kind), "returned", value) for value in values(kind))
        yield from ((member, None, "failed with", name) for name in RAISED)


CONTRACTS = {one.noun: one for one in contracts() if not one.protocol.__module__.startswith("fedsim.bridges")}


@pytest.mark.parametrize("noun", sorted(CONTRACTS))
@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_lies_are_refused(noun, every):
    seen = set()
    for member, kind, said, value in lies(noun):
        if every or kind not in seen:
            seen.add(kind)
            check(CONTRACTS[noun], member, said, value)


def check(contract, member, said, value):
    def answer(*arguments, **named):
        if said == "returned":
            return value
        raise RAISED[value]

    members = {name: answer if name in contract.methods else property(answer) for name in contract.members}
    part = type("Lie", (), {**members, "__module__": __name__})()
    checked = contract.checked(part, **KNOWN)
    words = re.escape(value) if said == "failed with" else ""
    with pytest.raises(PartError, match=rf"^{contract.noun} .*:Lie\.{member} {said} {words}"):
        called(contract, checked, member)


def called(contract, part, member):
    """Ask a member with something for each of its parameters."""
    found = getattr(part, member)
    if member in contract.methods:
        names = [*inspect.signature(inspect.getattr_static(contract.protocol, member)).parameters][1:]
        found(**{name: KNOWN.get(name, THREE) for name in names})
