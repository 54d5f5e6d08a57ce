"""Messages arrive as they were sent, and their memory is freed."""

import gc
import os
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import cloudpickle
import numpy as np
import pytest

from fedsim.learning.executors.workers.channel import Channel, by_value
from fedsim.learning.executors.workers.segments import Segment, raw


@pytest.fixture
def ends():
    both = one, other = tuple(Channel(end) for end in socket.socketpair())
    yield one, other
    for end in both:
        end.close()


def test_the_other_end_sees_what_is_written_into_a_segment(ends):
    segment, places = Segment.holding([raw(np.arange(3)), raw(np.arange(5.0))])
    ends[0].send("here", [segment])
    _, (theirs,) = ends[1].receive(copy=False)
    found = np.frombuffer(theirs.view(places[1]), np.float64)
    assert found.tolist() == [0, 1, 2, 3, 4]
    assert places[1][0] % 64 == 0
    segment.memory[places[1][0] : places[1][0] + 8] = raw(np.array([7.0]))
    assert found.tolist() == [7, 1, 2, 3, 4]
    with pytest.raises(TypeError, match="read-only"):
        theirs.memory[0] = 1


def test_closing_ends_a_receiver_on_either_side(ends):
    seen = []

    def read(end):
        try:
            end.receive(copy=True)
        except (EOFError, OSError) as error:
            seen.append(type(error))

    with ThreadPoolExecutor(2) as pool:
        pool.map(read, ends)
        ends[0].close()
    assert len(seen) == 2


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="counts descriptors in /proc")
def test_descriptors_are_given_back(ends):
    def sent():
        segment, _ = Segment.holding([raw(np.arange(3))])
        ends[0].send(np.zeros(10), [segment])
        ends[1].receive(copy=True)

    sent()
    gc.collect()
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208
    for _ in range(20):
        sent()
    gc.collect()
    assert len(os.listdir("/proc/self/fd")) == before  # noqa: PTH208


SOURCE = """
class {name}:
    def double(self, number):
        return {factor} * number
"""
READER = """
import pickle, sys
sys.path[:] = sys.argv[2:]
print(pickle.loads(bytes.fromhex(sys.argv[1])).double(4))
"""


@pytest.mark.parametrize("on_the_path", [None, "another module", "the module"])
def test_code_of_a_module_that_a_new_process_does_not_find_is_sent_along(on_the_path, tmp_path, monkeypatch):
    """The new process has this one's path; where another module of the same name lies there, it is not taken."""
    places = {place: tmp_path / place / "hidden_parts.py" for place in ("here", "there")}
    for factor, place in enumerate(places.values(), start=2):
        place.parent.mkdir()
        place.write_text(SOURCE.format(name="Doubling", factor=factor))
    if on_the_path is not None:
        monkeypatch.syspath_prepend(tmp_path / {"the module": "here", "another module": "there"}[on_the_path])
    spec = spec_from_file_location("hidden_parts", places["here"])
    module = module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "hidden_parts", module)
    spec.loader.exec_module(module)
    found = by_value(module.Doubling(), module.Doubling)
    assert (SOURCE.split("def ")[1][:6].encode() in found) == (on_the_path != "the module")
    command = [sys.executable, "-c", READER, found.hex(), *sys.path]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "8\n"  # noqa: S603
    assert "hidden_parts" not in cloudpickle.list_registry_pickle_by_value()
