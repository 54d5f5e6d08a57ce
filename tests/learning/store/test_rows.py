"""A flipped bit anywhere in a row is noticed."""

import pytest

from fedsim.learning.store.rows import record_of, row_of

ROW = row_of("00ff", {"loss": 0.25, "accuracy": 1.0})


def test_row_holds_the_record():
    assert record_of(ROW) == ("00ff", {"loss": 0.25, "accuracy": 1.0})
    assert ROW[2] == b"\0\0\0\0\0\0\xd0\x3f\0\0\0\0\0\0\xf0\x3f"  # 2^-2 and 2^0 in IEEE 754


@pytest.mark.parametrize("field", [0, 1, 2])
def test_a_flipped_bit_is_noticed(field):
    for bit in range(8 * len(ROW[field])):
        flipped = bytearray(ROW[field])
        flipped[bit // 8] ^= 1 << bit % 8
        assert record_of([*ROW[:field], bytes(flipped), *ROW[field + 1 :]]) is None


@pytest.mark.parametrize("other", [None, 3, 1.5, "text", b""])
@pytest.mark.parametrize("field", [0, 1, 2, 3])
def test_other_values_are_noticed(field, other):
    assert record_of([*ROW[:field], other, *ROW[field + 1 :]]) is None


def test_bytes_may_not_move_between_fields():
    digest, names, numbers, checksum = ROW
    assert record_of((digest + names[:1], names[1:], numbers, checksum)) is None
