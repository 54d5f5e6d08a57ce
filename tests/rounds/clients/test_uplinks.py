"""Dedicated uplinks after a shared downlink are computed for many clients at once, and as if for each alone."""

from types import SimpleNamespace

import numpy as np
import pytest

from fedsim.errors import ScenarioError
from fedsim.network.medium.disciplines import EqualSharing, FirstCome
from fedsim.network.medium.multicast import Multicast
from fedsim.rounds import Deadline, WaitForAll
from fedsim.rounds.clients.schedule import KnownStarts
from tests.support.worlds import Pipe, serve


class Asked(Pipe):
    """A pipe that records which uplinks are computed together; they take longer the later they begin."""

    def __init__(self, clients, down, delays_s=None):
        super().__init__([0] * clients, [1] * clients, down=down)
        self.asked = []
        self.delays_s = [0.0] * clients if delays_s is None else delays_s

    def uplink_s(self, client, draw, start_s, bits):
        self.asked.append((client.tolist(), start_s.tolist()))
        return self.up[client] + start_s / 10

    def downlink(self, client, bits):
        return self.down_medium.send(bits, 1.0, self.delays_s[client])


@pytest.mark.parametrize("compute_s", [0.0, 2.0])
@pytest.mark.parametrize("delays_s", [None, [0.3, 0.1, 0.4, 0.2]])
def test_all_uplinks_after_a_multicast_are_computed_in_one_call(compute_s, delays_s):
    """Also where the last bit travels differently long to each: the network says when it will arrive."""
    links = Asked(4, Multicast, delays_s)
    history, *_ = serve(WaitForAll(), [0] * 4, [compute_s] * 4, [0] * 4, links=links)
    begins_s = 1.0 + np.array(delays_s or [0.0] * 4) + compute_s
    assert len(links.asked) == 1
    asked = dict(zip(*links.asked[0], strict=True))
    assert [asked[client] for client in range(4)] == pytest.approx(begins_s.tolist())
    rows = history.participations.to_pylist()
    assert [row["uplink_s"] for row in rows] == pytest.approx((1 + begins_s / 10).tolist())
    assert [row["end_s"] for row in rows] == pytest.approx((begins_s + 1 + begins_s / 10).tolist())


def test_uplinks_after_downlinks_that_end_at_one_instant_are_computed_together_without_work():
    """Equal shares of a bit each: all four end at 4 s."""
    links = Asked(4, EqualSharing)
    serve(WaitForAll(), [0] * 4, [0] * 4, [0] * 4, links=links)
    assert links.asked == [([0, 1, 2, 3], [4.0] * 4)]


def test_uplinks_known_when_the_first_is_needed_are_computed_together():
    """Downlinks end at 1, 2, 3 and 4 s; the first has worked by 2.5 s, the third by 4.5 s."""
    links = Asked(4, FirstCome)
    serve(WaitForAll(), [0] * 4, [1.5] * 4, [0] * 4, links=links)
    assert links.asked == [([0, 1], [2.5, 3.5]), ([2, 3], [4.5, 5.5])]


def test_impossible_times_are_refused_also_when_they_are_computed_late():
    class Broken(Asked):
        def uplink_s(self, client, draw, start_s, bits):
            return np.where(client == 2, self.wrong, 1.0)

    links = Broken(4, Multicast)
    for policy, wrong, why in (
        (Deadline(deadline_s=9), np.nan, "times are at least 0"),
        (Deadline(deadline_s=9), -1.0, "times are at least 0"),
        (WaitForAll(), np.inf, "the policy waits for every client"),
    ):
        links.wrong = wrong
        with pytest.raises(ScenarioError, match=rf"round 1: the uplink of client 2 would take .* s; {why}"):
            serve(policy, [0] * 4, [1] * 4, [0] * 4, links=links)


def test_an_uplink_waits_for_its_downlink_to_know_when_it_ends():
    """Member 0's downlink promises to say when it ends, and does not know yet: member 1 is timed alone."""

    class Announced:
        ends_s = np.inf

        def arrives_s(self):
            return self.ends_s

    starts, downlink = KnownStarts(), Announced()
    plan = SimpleNamespace(compute_s=np.array([1.0, 2.0]), work=np.ones(2))
    starts.announced[0], starts.known[1] = downlink, 2.0
    assert starts.take(plan) == [(1, 2.0)]
    downlink.ends_s = 5.0
    assert starts.take(plan) == [(0, 6.0)]
    assert starts.take(plan) == []
