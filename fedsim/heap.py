"""What was there before a run, kept out of the searches for garbage during it, which are fewer.

Python looks for unreachable cycles of objects when many objects have been made, and at times looks at all there are.
What a program has loaded and built before a run, some hundred thousand objects, lives as long as the run. So do the
transfers and waits of a cohort for a round, some thousand objects, which Python's own number of 700 new objects would
have looked at several times.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from typing import Final

_RUNS: Final = count(1)
SEARCHED = 32
"""Runs of a process between searches of all objects."""
NEW_OBJECTS: Final = 10_000
"""New objects between searches of these, at least."""


@contextmanager
def settled_heap() -> Iterator[None]:
    """Have no search for garbage look at the objects that exist now, until the end, and fewer searches look at others.

    Objects that come back from this do not count towards Python's next search of all objects, so that the garbage of
    many short runs would pile up. Young garbage is therefore removed before each run, and all of it before each 32nd.

    Where a caller has done so already, with `gc.freeze`, nothing happens, and the caller's objects stay as they are.
    """
    if gc.get_freeze_count():
        yield
        return
    gc.collect(1 if next(_RUNS) % SEARCHED else 2)
    gc.freeze()
    new, *older = gc.get_threshold()
    if new:  # 0 is for no searches
        gc.set_threshold(max(new, NEW_OBJECTS), *older)
    try:
        yield
    finally:
        gc.set_threshold(new, *older)
        gc.unfreeze()
