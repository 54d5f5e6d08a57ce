"""What a selector returns, made the server's own."""

import numpy as np

from fedsim.selectors import Probe
from fedsim.selectors.validation import as_probe
from tests.support.views import view_of


def test_a_question_is_taken_over_as_plain_numbers_and_a_copy():
    ids = np.array([2, 0])
    asked = Probe(client=ids, asks="resources", up_bits=np.float32(8), samples=np.int64(3), wait_s=np.int64(2))
    taken = as_probe(asked, view_of(4), "Own")
    ids[:] = 3
    assert taken.client.tolist() == [2, 0]
    assert (taken.asks, taken.down_bits, taken.up_bits, taken.samples, taken.wait_s) == ("resources", None, 8, 3, 2)
    assert [type(value) for value in (taken.up_bits, taken.samples, taken.wait_s)] == [float, int, float]
