"""What processes share arrives as it was, and its memory is freed."""

import gc
import pickle
import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import cloudpickle
import numpy as np
import pytest

from fedsim.learning import MLP, LocalTraining, TrainingSetup
from fedsim.learning.executors.portable import by_value, from_bytes, in_shared_memory, portable
from fedsim.learning.executors.worker import Worker


def test_arrays_in_a_segment_are_read_as_they_were_and_their_memory_is_freed():
    def shared():
        held = in_shared_memory([np.arange(3), np.arange(5.0).reshape(1, 5), np.zeros(0, np.float32)])
        first, second, third = held.thing()
        assert (first.tolist(), second.tolist(), third.shape) == ([0, 1, 2], [[0, 1, 2, 3, 4]], (0,))
        assert held.places[1][0] % 64 == 0
        with pytest.raises(ValueError, match="read-only"):
            first[0] = 1

    shared()
    gc.collect()
    before = len(list(Path("/proc/self/fd").glob("*")))
    for _ in range(20):
        shared()
    gc.collect()
    assert len(list(Path("/proc/self/fd").glob("*"))) == before


class Leaving:
    """Ends the process that reads it."""

    def __reduce__(self):
        return sys.exit, (3,)


def test_a_variable_that_no_worker_can_read_is_named(tiny):
    setup = TrainingSetup(MLP(), None, LocalTraining(), seed=0)
    variables = pickle.dumps({"module variable own:X": pickle.dumps(Leaving())})
    error = from_bytes(Worker(by_value((setup, "", variables)), tiny).known())
    assert "module variable own:X: it cannot be read in a process of its own (SystemExit(3))" in str(error)
    assert "a worker process failed: SystemExit(3)" in str(from_bytes(portable(SystemExit(3))))


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
