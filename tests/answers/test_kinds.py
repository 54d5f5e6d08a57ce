"""Kinds of answers: what each lets through, against plain loops, and that it is a copy."""

import math

import numpy as np
import pytest
from hypothesis import given, strategies as st

from fedsim.answers import AnswerError, Flag, InstanceOf, Mask, Number, Numbers, OneOf, OptionalOf, same_shape, shaped

GIVEN = {"u": np.zeros(3), "clients": 4, "jobs": [1, 2]}


def refused(kind, answer):
    try:
        kind(answer, GIVEN)
    except AnswerError as error:
        return error
    return None


@given(st.lists(st.floats(width=64), max_size=6), st.booleans(), st.booleans())
def test_numbers_are_in_range_each_by_itself(values, infinite, nan):
    """The oracle is a loop over Python's own numbers."""
    kind = Numbers(None, least=-1.0, most=5.0 if not infinite else 1e308, infinite=infinite, nan=nan)
    most = math.inf if infinite else 5.0
    allowed = all((math.isnan(value) and nan) or -1.0 <= value <= most for value in values)
    error = refused(kind, np.array(values, dtype=np.float64))
    assert (error is None) == allowed
    if error is not None:
        first = next(i for i, v in enumerate(values) if not ((math.isnan(v) and nan) or -1.0 <= v <= most))
        assert error.at == first


@given(st.lists(st.integers(-(2**70), 2**70), min_size=1, max_size=4))
def test_whole_numbers_keep_their_value(values):
    kind = Numbers(None, least=1, most=2**31 - 1, dtype=np.int64)
    error = refused(kind, values)
    assert (error is None) == all(1 <= value < 2**31 for value in values)
    if error is None:
        assert kind(values, GIVEN).tolist() == values


def test_arrays_are_copied():
    array = np.ones(3)
    for kind in (Numbers(same_shape("u")), Numbers(same_shape("u"), dtype=np.float32)):
        found = kind(array, GIVEN)
        array[0] = 7.0
        assert found[0] == 1.0
        array[0] = 1.0
    mask = np.ones(3, dtype=bool)
    found = Mask(same_shape("u"))(mask, GIVEN)
    mask[0] = False
    assert found.all()


def test_shapes_come_from_arguments_counts_and_lists():
    assert same_shape("u")(GIVEN) == (3,)
    assert shaped("clients", 2, "jobs", "u")(GIVEN) == (4, 2, 2, 3)


@pytest.mark.parametrize(
    ("kind", "right", "wrong"),
    [
        (Number(least=0), [0, 1.5, np.float64(2), np.array(3.0)], [-1, math.inf, math.nan, True, None, "1", [1]]),
        (Number(least=0, infinite=True), [math.inf], [math.nan, -math.inf]),
        (Number(least=0, above=True), [1e-300], [0, 0.0]),
        (Number(least=1, whole=True, none=True), [None, 1, np.int64(2)], [1.0, 0, True]),
        (Flag(), [True, np.bool_(False)], [0, 1, None]),
        (OneOf(("a", 1)), ["a", 1], ["b", True, 1.0, None]),
        (InstanceOf(dict), [{}], [[], None]),
        (OptionalOf(InstanceOf(dict)), [None, {}], [[], 0]),
    ],
)
def test_single_answers(kind, right, wrong):
    assert not [answer for answer in right if refused(kind, answer)]
    assert not [answer for answer in wrong if not refused(kind, answer)]
