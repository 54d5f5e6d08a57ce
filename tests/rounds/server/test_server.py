"""The run of a server, and what ends it too early."""

import pytest
from simpy.core import StopSimulation

from fedsim.errors import PartError
from fedsim.rounds import Deadline
from tests.support.worlds import serve


def stop(_event):
    raise StopSimulation("over")


class Stopping(Deadline):
    """Ends the run of the clock half a second into the round."""

    def enough(self, round_):
        moment = round_.limit(0.5)
        moment.callbacks.append(stop)
        return round_.everyone | moment


def test_a_part_that_stops_the_clock_is_refused_and_not_taken_for_the_end():
    with pytest.raises(PartError) as caught:
        serve(Stopping(deadline_s=5), [1], [1], [1])
    first, second, *_, last = str(caught.value).splitlines()
    assert first == "a part of the user's own has stopped the clock"
    assert second == "  allowed: nothing that ends a run"
    assert last.split() == ["simulated", "second:", "0.5"]
