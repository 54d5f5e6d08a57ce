"""The heap before a run stands aside during it, and comes back."""

import gc

import pytest

from fedsim import heap
from fedsim.heap import settled_heap


def test_all_objects_stand_aside_and_come_back():
    """``gc.get_freeze_count`` counts what no search looks at; there is nothing before and after."""
    assert gc.get_freeze_count() == 0
    with settled_heap():
        inside = gc.get_freeze_count()
        with settled_heap():
            pass
        assert gc.get_freeze_count() == inside > 10_000
    assert gc.get_freeze_count() == 0


def test_they_come_back_after_an_error():
    with pytest.raises(KeyError), settled_heap():
        raise KeyError
    assert gc.get_freeze_count() == 0


@pytest.mark.parametrize(("own", "during"), [(700, heap.NEW_OBJECTS), (10**6, 10**6), (0, 0)])
def test_searches_are_fewer_and_as_before_afterwards(own, during):
    """A caller who wants still fewer, or none at all, has their own way."""
    before = gc.get_threshold()
    try:
        gc.set_threshold(own, 11, 12)
        with settled_heap():
            assert gc.get_threshold() == (during, 11, 12)
        assert gc.get_threshold() == (own, 11, 12)
    finally:
        gc.set_threshold(*before)


def test_what_a_caller_has_put_aside_stays_there():
    gc.freeze()
    try:
        with settled_heap():
            pass
        assert gc.get_freeze_count() > 10_000
    finally:
        gc.unfreeze()


def test_the_garbage_of_many_short_runs_does_not_pile_up(monkeypatch):
    monkeypatch.setattr(heap, "SEARCHED", heap.SEARCHED // 4)  # `tests/conftest.py` makes searches rarer

    class Cycle:
        alive = 0

        def __init__(self):
            self.own = self
            Cycle.alive += 1

        def __del__(self):
            Cycle.alive -= 1

    for _ in range(200):
        with settled_heap():
            Cycle()
    assert Cycle.alive <= 40
