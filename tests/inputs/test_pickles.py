"""The restricted reader of pickles: what plain ones hold comes out, and whatever names code is refused and not run."""

import collections
import datetime
import pickle
import struct

import numpy as np
import pytest
from hypothesis import given, strategies as st

from fedsim.errors import DataError
from fedsim.inputs.pickles import unpickled

scalars = (
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | st.text(max_size=20)
)
keys = st.integers(-1000, 1000) | st.text(max_size=5)
trees = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=5) | st.dictionaries(keys, inner, max_size=5) | st.tuples(inner, inner, inner, inner)
    ),
    max_leaves=12,
)


@given(trees, st.integers(0, 5))
def test_plain_values_come_out_as_they_went_in(value, protocol):
    value = rebuilt(value)
    found = unpickled(pickle.dumps(value, protocol=protocol), "value.pkl")
    assert found == value
    assert repr(found) == repr(value), "types too: 1 is not True"


def rebuilt(value):
    """Return a copy that is a tree: Hypothesis may use one container twice."""
    if isinstance(value, dict):
        return {key: rebuilt(item) for key, item in value.items()}
    if isinstance(value, list):
        return [rebuilt(item) for item in value]
    return tuple(rebuilt(item) for item in value) if value and isinstance(value, tuple) else value


HOSTILE = {
    "INST": (b"(Vtouch ran\nios\nsystem\n.", "os.system"),
    "OBJ": (b"(cos\nsystem\nVtouch ran\no.", "os.system"),
    "GLOBAL": (b"cos\nsystem\n(Vtouch ran\ntR.", "os.system"),
    "STACK_GLOBAL": (b"\x80\x04\x8c\x02os\x8c\x06system\x93\x8c\x09touch ran\x85R.", "os.system"),
    "eval": (b"cbuiltins\neval\n(Vopen('ran', 'w')\ntR.", "builtins.eval"),
    "a name in a name": (b"\x80\x04\x8c\x02os\x8c\x0bpath.isfile\x93.", "os.path.isfile"),
    "NEWOBJ": (b"\x80\x02ccollections\nOrderedDict\n)\x81.", "collections.OrderedDict"),
}


def laughs():
    """Return the pickle of nested lists that each hold the one before ten times: 10^30 numbers in 300 bytes."""
    value = [1]
    for _ in range(30):
        value = [value] * 10
    return pickle.dumps(value)


def cycle():
    value = []
    value.append(value)
    return pickle.dumps(value)


def key():
    """Return the pickle of a key whose hash is of 10^30 numbers."""
    value = (1,)
    for _ in range(30):
        value = (value,) * 10
    return pickle.dumps(value)[:-1] + b"}\x94K\x01K\x01s0K\x02h\x00s."


BROKEN = {
    **{name: (content, f"is refused: it names {named}; allowed: lists") for name, (content, named) in HOSTILE.items()},
    "laughs": (laughs(), "occurs in two places"),
    "laughs by copies": (b"]" + b"(2222t" * 40 + b".", "occurs in two places"),
    "a key of laughs": (key(), "occurs in two places"),
    "cycle": (cycle(), "occurs in two places"),
    "a huge number in letters": (b"L" + b"9" * 6000 + b"L\n.", "no pickle"),
    "a string that claims 4 GiB": (b"X\xff\xff\xff\xffabc.", "no pickle"),
    "a number that claims 2 GiB": (b"\x80\x02\x8b" + struct.pack("<i", 2**31 - 1) + b"abc.", "no pickle"),
    "a memory of 64 GiB": (b"]r\xff\xff\xff\xff.", "place 4294967295 of its memory after 1 instructions"),
    "cut off": (pickle.dumps([1, 2, 3])[:-2], "no pickle"),
    "nothing": (b"", "no pickle"),
    "append to a number": (b"K\x01K\x02a.", "no pickle"),
    "half an item": (b"(K\x01d.", "no pickle"),
    "a list for a key": (b"}]K\x03s.", "no pickle"),
    "memory that is empty": (b"h\x05.", "no pickle"),
    "no pickle at all": (b"\xff\xfe hello", "no pickle"),
    "a date": (pickle.dumps(datetime.date(2020, 1, 1)), "it names datetime.date"),
    "a counter": (pickle.dumps(collections.Counter("aab")), "it names collections.Counter"),
    "arrays": (pickle.dumps([np.arange(3), np.arange(4)]), r"it names numpy\S+"),
    "REDUCE without a name": (b"K\x01)R.", "no pickle"),
    "NEWOBJ without a name": (b"\x80\x02K\x01)\x81.", "no pickle"),
    "BUILD": (b"]}(K\x01K\x02ub.", "no pickle"),
    "EXT1": (b"\x80\x02\x82\x01.", "no pickle"),
    "PERSID": (b"Psomething\n.", "no pickle"),
    "NEXT_BUFFER": (b"\x80\x05\x97.", "no pickle"),
    "deep tuples of one": (b"N" + b"\x85" * 500_000 + b".", "nested deeper than 100"),
    "a deep key": (b"}(N" + b"\x85" * 500_000 + b"K\x01u.", "nested deeper than 100"),
    "deep tuples of two": (b"N" + b"K\x01\x86" * 500_000 + b".", "nested deeper than 100"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_no_tree_of_plain_values_is_refused_and_not_run(name, tmp_path, monkeypatch):
    """The hash of a tuple that is nested a million times needs more than the stack of a process."""
    content, message = BROKEN[name]
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DataError, match=rf"^broken\.pkl: .*{message}"):
        unpickled(content, "broken.pkl")
    assert not (tmp_path / "ran").exists()


@given(st.binary(max_size=60))
def test_any_bytes_give_values_or_a_refusal(content):
    try:
        found = unpickled(content, "noise.pkl")
    except DataError:
        return
    assert type(found).__module__ == "builtins"
    assert not callable(found)


def test_the_number_of_instructions_is_bounded():
    content = pickle.dumps(list(range(1000)))
    assert len(unpickled(content, "large.pkl")) == 1000
    with pytest.raises(DataError, match="more than 500 instructions"):
        unpickled(content, "large.pkl", max_instructions=500)


@pytest.mark.parametrize("protocol", range(6))
def test_nests_that_a_table_has_are_read(protocol):
    value = {str(i): {"duration": 3.5, "active": [(i, 2.5), (i, None)], "off": [[], {}]} for i in range(50)}
    assert unpickled(pickle.dumps(value, protocol=protocol), "a.pkl") == value
