"""Which jobs go together, and in which order results are read."""

import numpy as np
import pytest

from fedsim.errors import FedsimError
from fedsim.learning.executors.workers.calls import Call, Rate, Setup
from fedsim.learning.executors.workers.channel import by_value
from fedsim.learning.executors.workers.messages import Reply, SetupMessage, SharedData, Trainings
from fedsim.learning.executors.workers.segments import Segment


class Numbers(Call):
    def work(self, indices):
        return Trainings([], [])


def call(costs, unit_s, workers=2, window=99):
    rate = Rate()
    rate.unit_s = unit_s
    segment = Segment.create(1)
    setup = Setup(SetupMessage(0, [], b"", SharedData([], 2, 255)), segment)
    return Numbers(setup, costs, rate, workers=workers, window=window, segments=[], urgency=0)


def taken(one):
    found = []
    while jobs := one.next_jobs():
        found.append(jobs)
    return found


def test_long_jobs_go_first_and_alone_and_short_ones_together_in_ever_smaller_parts():
    assert taken(call([1.0, 3.0, 2.0], unit_s=1.0)) == [[1], [2], [0]]
    assert taken(call([1.0, 3.0, 2.0], unit_s=None)) == [[1], [2], [0]], "one by one while nothing is measured"
    # With 2 workers half of a worker's share is a quarter of what is left: of 32 jobs 8, of 24 6, and so on.
    assert [len(jobs) for jobs in taken(call([1.0] * 32, unit_s=0.01))] == [8, 6, 4, 3, 2, 2, 1, 1, 1, 1, 1, 1, 1]
    assert [len(jobs) for jobs in taken(call([1.0] * 32, unit_s=0.001))] == [8, 6, 5, 5, 5, 3], "at least 5 ms"
    assert [len(jobs) for jobs in taken(call([1.0] * 32, unit_s=0.05))][:3] == [2, 2, 2], "at most 0.1 s"


def test_no_job_starts_too_far_ahead_of_the_reader():
    one = call([1.0, 1.0, 5.0, 9.0], unit_s=1.0, window=2)
    assert taken(one) == [[0], [1]]
    one.put([1], Reply(np.array([[0.5]]), 1.0))
    assert not one.ready()
    one.put([0], Reply(np.array([[0.25]]), 1.0))
    assert (one.ready(), one.get().tolist()) == (True, [0.25])
    assert taken(one) == [[2]]
    assert one.get().tolist() == [0.5]
    assert taken(one) == [[3]]
    assert not one.ready()


def test_the_first_failure_is_raised():
    one = call([1.0, 1.0], unit_s=1.0)
    for jobs, text in (([1], "first"), ([0], "second")):
        one.put(jobs, Reply(by_value(FedsimError(text)), 1.0))
    assert one.ready()
    with pytest.raises(FedsimError, match="first"):
        one.get()


def test_the_rate_follows_what_is_measured():
    rate = Rate()
    rate.observe(10.0, 1.0)
    assert rate.unit_s == pytest.approx(0.1)
    rate.observe(10.0, 2.0)
    assert rate.unit_s == pytest.approx(0.7 * 0.1 + 0.3 * 0.2)
