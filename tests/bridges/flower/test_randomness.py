"""Global random numbers come from the scenario's seed, each call of a client has its own, and none are left behind."""

import random

import numpy as np
import pytest

pytest.importorskip("flwr", reason="the extra 'flower' is not installed")

from fedsim.bridges.flower.randomness import Randomness
from fedsim.streams import Streams


def draw():
    return random.random(), np.random.random()  # noqa: S311, NPY002  # what is tested


def test_calls_draw_the_same_whatever_came_before_and_leave_generators_as_they_were():
    seeds = []
    one, other = Randomness(Streams(3), [seeds.append]), Randomness(Streams(3))
    before = random.getstate(), np.random.get_state()[1].tolist()  # noqa: NPY002
    with one.of_server():
        with one.of_client(0, 0):
            drawn = draw()
        with one.of_client(1, 0), one.of_client(0, 1):
            draw()
        after = draw()
    with other.of_server():
        assert draw() == after
        with other.of_client(0, 0):
            assert draw() == drawn
    with Randomness(Streams(4)).of_client(0, 0):
        assert draw() != drawn
    assert (random.getstate(), np.random.get_state()[1].tolist()) == before, "as if nothing was drawn"  # noqa: NPY002
    assert len(set(seeds)) == 4
    assert all(0 <= seed < 2**32 for seed in seeds)
