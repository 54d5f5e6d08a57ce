"""The run of a server, and what ends it too early."""

import pytest
from simpy.core import StopSimulation

from fedsim.errors import PartError
from fedsim.rounds import Deadline, WaitForAll
from tests.support.worlds import FixedLinks, serve


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


def test_a_part_that_fails_on_the_clock_is_named_with_round_and_second():
    """The second round begins at 3 s."""

    class Failing(FixedLinks):
        def downlink_s(self, client, draw, start_s, bits):
            if start_s > 0:
                raise KeyError("signal")
            return super().downlink_s(client, draw, start_s, bits)

    with pytest.raises(PartError, match="downlink_s failed with KeyError") as caught:
        serve(WaitForAll(), [1], [1], [1], links=Failing([1], [1]), count=2)
    *_, number, second = str(caught.value).splitlines()
    assert (number.split(), second.split()) == (["round:", "2"], ["simulated", "second:", "3"])
