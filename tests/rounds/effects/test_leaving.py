"""Hazards of phases, and availability at end points, if durations are unknown in advance; worked by hand."""

import numpy as np
import pytest

from fedsim.devices.availability.traces import Intervals, TraceAvailability
from fedsim.devices.contracts import Dropout
from fedsim.devices.dropout import Hazard, PhaseHazard
from fedsim.network.medium.disciplines import EqualSharing, FirstCome
from fedsim.rounds import Deadline
from tests.support.stories import rows
from tests.support.worlds import Pipe, available_in, serve

ROW = ("downlink_s", "compute_s", "uplink_s", "queue_s", "end_s", "downlink_bits", "uplink_bits", "outcome", "cut_in")


class Endured(Dropout):
    """A hazard by phase whose clients have the endurance of a table."""

    def __init__(self, endurance):
        self._endurance = np.asarray(endurance, float)

    def phase_hazards(self):
        return 0.5, 0.25, 1.0

    def endurance(self, client, draw, streams):
        return self._endurance[client]

    def time_to_dropout_s(self, client, draw, streams, phases_s=None):
        return PhaseHazard.time_to_dropout_s(self, client, draw, streams, phases_s)


def test_laws_that_differ_between_phases_are_told_apart():
    assert PhaseHazard(downlink_per_s=1.0, compute_per_s=0.0, uplink_per_s=0.5).phase_hazards() == (1.0, 0.0, 0.5)
    assert Hazard(rate_per_s=1.0).phase_hazards() is None


# One after another over 1 bit/s down, 4 s of work. Hazards: 0.5 a second down (queue included), 0.25 in work, 1 up.
ENDURANCE = [
    0.4,  # vanishes after 0.8 s of the downlink, and the next one's begins there and ends at 1.8 s
    0.9 + 0.5,  # 0.9 down, then 2 s of work
    1.4 + 1.0 + 1.5,  # 1.4 down (until 2.8 s), 1 in work, then 1.5 s of the uplink
    100.0,
]


BY_HAND = {
    "down": (
        *(0, 3, {"down": FirstCome}, ENDURANCE),
        (0.8, 0.0, 0.0, 0.0, 0.8, 0.8, 0.0, "dropped", "downlink"),
        (1.0, 2.0, 0.0, 0.8, 3.8, 1.0, 0.0, "dropped", "compute"),
        (1.0, 4.0, 1.5, 1.8, 8.3, 1.0, 0.5, "dropped", "uplink"),
        (1.0, 4.0, 3.0, 2.8, 10.8, 1.0, 1.0, "delivered", None),
    ),
    # Uploads begin at 6.8 s and 7.8 s. The first vanishes after 1.5 s with 1 bit/s alone for 1 s: it is done.
    "both": (
        *(0, 0, {"down": FirstCome, "up": EqualSharing}, [*ENDURANCE[:3], 1.9 + 1.0 + 0.75]),
        (0.8, 0.0, 0.0, 0.0, 0.8, 0.8, 0.0, "dropped", "downlink"),
        (1.0, 2.0, 0.0, 0.8, 3.8, 1.0, 0.0, "dropped", "compute"),
        (1.0, 4.0, 1.0, 1.8, 7.8, 1.0, 1.0, "delivered", None),
        (1.0, 4.0, 0.75, 2.8, 8.55, 1.0, 0.75, "dropped", "uplink"),
    ),
    # Downlinks of 2 s, work of 4 s: 1 + 1 are endured by 6 s. Both upload from then on, at half a bit per second.
    "up": (
        *(2, 0, {"up": EqualSharing}, [0.5, 1.5, 2.5, 100.0]),
        (1.0, 0.0, 0.0, 0.0, 1.0, 0.5, 0.0, "dropped", "downlink"),
        (2.0, 2.0, 0.0, 0.0, 4.0, 1.0, 0.0, "dropped", "compute"),
        (2.0, 4.0, 0.5, 0.0, 6.5, 1.0, 0.25, "dropped", "uplink"),
        (2.0, 4.0, 1.25, 0.0, 7.25, 1.0, 1.0, "delivered", None),
    ),
}


@pytest.mark.parametrize("shared_ways", BY_HAND)
def test_a_hazard_by_phase_on_links_that_are_shared(shared_ways):
    down_s, up_s, shared, endurance, *expected = BY_HAND[shared_ways]
    times, links = ([down_s] * 4, [4] * 4, [up_s] * 4), Pipe([down_s] * 4, [up_s] * 4, **shared)
    history, *_ = serve(Deadline(deadline_s=50), *times, links=links, dropout=Endured(endurance))
    for row, worked in zip(rows(history.participations, *ROW), expected, strict=True):
        assert row[:7] == pytest.approx(worked[:7])
        assert row[7:] == worked[7:]


def end_points(*rows_):
    owner = [client for client, row in enumerate(rows_) for _ in row]
    start, end = ([times[i] for row in rows_ for times in row] for i in (0, 1))
    intervals = Intervals.of(owner, start, end, [1000.0] * len(rows_))
    return TraceAvailability(intervals, np.arange(len(rows_)), "end-point")


@pytest.mark.parametrize(
    ("shared", "ends_s"),
    [({"down": FirstCome}, [6, 7, 8, 9]), ({"down": FirstCome, "up": EqualSharing}, [5, 6, 7, 8])],
)
def test_availability_is_evaluated_when_a_task_really_ends(shared, ends_s):
    """Downlinks end at 1, 2, 3 and 4 s; 3 s of work; 2 s up alone, or 1 s where it is shared.

    The first is away in between and back at its end, the second's stay ends exactly then, the third is away then, the
    fourth left for good long before.
    """
    first, second, third, _ = ends_s
    availability = end_points(
        [(0, 0.5), (first - 0.5, 100)], [(0, second)], [(0, third - 0.25), (third + 1, 100)], [(0, 2.0)]
    )
    links = Pipe([0] * 4, [2] * 4, **shared)
    history, *_ = serve(Deadline(deadline_s=50), [0] * 4, [3] * 4, [2] * 4, links=links, presence=availability)
    assert rows(history.participations, "end_s", "outcome", "cut_in", "uplink_bits") == [
        (ends_s[0], "delivered", None, 1.0),
        (ends_s[1], "delivered", None, 1.0),
        (ends_s[2], "dropped", "uplink", 1.0),
        (ends_s[3], "dropped", "uplink", 1.0),
    ]
    assert history.column("rounds", "duration_s").tolist() == [50.0], "the server does not learn of it"


def test_leaving_during_a_task_of_unknown_duration_is_a_dropout_at_that_instant():
    """Checked over the whole task, and asked at its end no more than before; the second leaves as it has ended."""
    availability = TraceAvailability(Intervals.of([0, 1], [0, 0], [2.5, 6.0], [1000.0] * 2), np.arange(2))
    links = Pipe([0] * 2, [0] * 2, down=FirstCome, up=EqualSharing)
    history, *_ = serve(Deadline(deadline_s=50), [0] * 2, [3] * 2, [0] * 2, links=links, presence=availability)
    assert rows(history.participations, "end_s", "outcome", "cut_in") == [
        (2.5, "dropped", "compute"),
        (6.0, "delivered", None),
    ]
    # The three phases add up to the next number above 0.6.
    history, *_ = serve(Deadline(deadline_s=50), [0.1], [0.2], [0.3], presence=available_in([(0, 0.6)]))
    assert rows(history.participations, "outcome") == [("delivered",)]
