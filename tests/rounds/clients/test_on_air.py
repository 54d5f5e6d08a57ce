"""Transfers on the air by hand: what ends one early, and what a wait in a queue does to a battery."""

from types import SimpleNamespace

import pytest
from simpy import Environment

from fedsim.history.outcomes import UPLINK
from fedsim.rounds.clients.on_air import OnAir


class _Transfer:
    """Waits in a queue until an instant, and then goes on for ever."""

    def __init__(self, env, queued_until_s=0.0):
        self.env, self.queued_until_s, self.cancelled = env, queued_until_s, False

    def queued_s(self):
        return min(self.env.now, self.queued_until_s)

    def cancel(self):
        self.cancelled = True


def on_air(lost_s=float("inf"), lasts_s=float("inf")):
    """Return an open transfer of client 3 in a world of its own, the transfer, and when the client was dropped."""
    env, dropped = Environment(), []
    air = OnAir(
        env,
        SimpleNamespace(lost_after_s=lambda *_: lost_s),
        SimpleNamespace(lasts_s=lambda *_: lasts_s),
    )
    return env, air, dropped, lambda i, *, empty: dropped.append((env.now, i, empty))


@pytest.mark.parametrize(
    ("lost_s", "lasts_s", "queued_until_s", "expected"),
    [
        (2.0, 5.0, 0.0, (2.0, 3, False)),
        (7.0, 5.0, 0.0, (5.0, 3, True)),
        # Four seconds of waiting cost nothing: the five on the air end at 9 s, after the hazard or before it.
        (7.0, 5.0, 4.0, (7.0, 3, False)),
        (9.5, 5.0, 4.0, (9.0, 3, True)),
    ],
)
def test_what_comes_first_drops_the_client(lost_s, lasts_s, queued_until_s, expected):
    env, air, dropped, drop = on_air(lost_s, lasts_s)
    air.open(3, UPLINK, _Transfer(env, queued_until_s), drop)
    while not dropped:
        env.step()
    assert dropped == [expected]


def test_a_closed_transfer_is_cancelled_and_drops_no_client_later():
    env, air, dropped, drop = on_air(2.0, 5.0)
    transfer = _Transfer(env)
    air.open(3, UPLINK, transfer, drop)
    assert 3 in air
    assert air.close(3) is transfer
    assert transfer.cancelled
    assert 3 not in air
    env.run()
    assert dropped == []


def test_events_of_an_earlier_transfer_do_not_end_a_later_one():
    env, air, dropped, drop = on_air(2.0)
    air.open(3, UPLINK, _Transfer(env), drop)
    env.run(until=1.0)
    air.close(3)
    air.open(3, UPLINK, _Transfer(env), drop)
    env.run(until=2.5)
    assert dropped == []
    env.run()
    assert dropped == [(3.0, 3, False)]
