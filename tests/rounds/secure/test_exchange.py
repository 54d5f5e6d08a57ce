"""The steps of secure aggregation on the clock: seconds and bits by hand, and clients that are lost between steps."""

import numpy as np
import pytest

from fedsim import simulate
from fedsim.devices import Dropout
from fedsim.errors import ScenarioError
from fedsim.history.outcomes import SecureStep
from fedsim.network.medium.disciplines import EqualSharing
from fedsim.rounds import Deadline, WaitForAll
from fedsim.rounds.effects.faults.settings import ServerRestart
from fedsim.rounds.policies.adaptive import MovingAverage, QuantileDeadline
from fedsim.rounds.policies.count_based import KFastest
from fedsim.rounds.policies.late import Drop
from fedsim.rounds.secure.exchange import SECURE_DRAWS, SecureParts
from fedsim.rounds.secure.protocols import Bonawitz
from fedsim.streams import Streams
from tests.support.short_runs import timed
from tests.support.worlds import Pipe, available_in, batteries, serve

RATE_BPS = 1024.0
CONSTANT_RATE = timed(
    clients=4,
    bits=32_000.0,
    samples=10,
    # A kbit has 1,024 bits here.
    network={"kind": "fedscale", "median_kbps": 1.0, "sigma": 0.0, "lowest_kbps": 0.5},
    rounds={"count": 2, "secure_aggregation": {"kind": "bonawitz", "mask_s": 0.5, "server_mask_s": 0.25}},
)
STEPS = SecureStep.labels()


class LostIn(Dropout):
    """Each client of a table leaves in one step, after some seconds of it; step 4 is the participation."""

    def __init__(self, lost, after_s=0.5):
        self.lost, self.after_s = lost, after_s

    def time_to_dropout_s(self, client, draw, streams, phases_s=None):
        steps, round_ = divmod(draw, SECURE_DRAWS)
        step = steps - 1 if steps else 4
        lost = [self.lost.get(one) for one in client.tolist()]
        return np.array([self.after_s if (at(round_) if callable(at) else at) == step else np.inf for at in lost])


def run(lost=None, *, clients=4, threshold=0.5, policy=None, after_s=0.5, up_s=1.0, **world):
    """Serve a round in which messages take 1 s, or as stated, and work 2 s; clients are lost in steps of a table."""
    protocol = Bonawitz(threshold=threshold, **world.pop("options", {}))
    secure = SecureParts.of(protocol, clients, clients, Streams(0))
    return serve(
        policy or Deadline(deadline_s=10.0),
        *([1.0] * clients, [2.0] * clients, np.broadcast_to(up_s, clients)),
        secure=secure,
        **{"dropout": LostIn(lost or {}, after_s), **world},
    )


def in_step(history, step):
    return [row for row in history.secure_steps.to_pylist() if row["step"] == STEPS[step]]


def test_seconds_and_bits_of_each_step_by_hand():
    """Four clients, keys and shares of 256 bits, 1,000 numbers of 16 bits, 1,024 bit/s.

    Keys up: 2 keys, 512 bits. Keys down and shares up: 2 of each of 3 others, 1,536 bits. Shares down: 1,536 bits, then
    4 masks of 0.5 s. Model: 32,000 bits. Masked update: sums up to 4 (2^16 - 1) have 18 bits, 18,000 in all. Shares
    that take masks away: 4, 1,024 bits; then 4 masks of 0.25 s at the server.
    """
    history = simulate(CONSTANT_RATE)
    rows = [[row for row in in_step(history, step) if row["round"] == 1] for step in range(4)]
    bits = [(0.0, 512.0), (1536.0, 1536.0), (1536.0, 0.0), (0.0, 1024.0)]
    starts_s = [0.0, 0.5, 3.5, 7.0 + 32_000 / RATE_BPS + 18_000 / RATE_BPS]
    for step, (found, (down, up), start_s) in enumerate(zip(rows, bits, starts_s, strict=True)):
        assert [row["client"] for row in found] == [0, 1, 2, 3]
        work_s = 2.0 if step == SecureStep.RECEIVE_SHARES else 0.0
        for row in found:
            assert (row["downlink_bits"], row["uplink_bits"], row["start_s"]) == (down, up, start_s)
            assert (row["downlink_s"], row["compute_s"], row["uplink_s"]) == (down / RATE_BPS, work_s, up / RATE_BPS)
            assert row["outcome"] == "delivered"
    assert history.column("participations", "start_s")[:4].tolist() == [7.0] * 4
    assert history.column("participations", "uplink_bits").tolist() == [18_000.0] * 8
    round_s = starts_s[3] + 1.0 + 1.0
    assert history.column("rounds", "end_s").tolist() == [round_s, 2 * round_s]
    assert history.column("rounds", "model_version").tolist() == [1, 2]
    assert history.critical_path()["phase"].to_pylist() == ["downlink"] * 2
    # Masks are taken away after the deadline too, so that it saves nothing of that.
    assert history.deadline_whatif([50_000 / RATE_BPS - 1.0]).saved_s.tolist() == [[1.0], [1.0]]
    table = history.by_fate().to_pydict()
    at = table["fate"].index("secure-aggregation")
    assert table["participations"][at] == 32
    assert table["uplink_bits"][at] == 2 * 4 * (512 + 1536 + 1024)


def test_updates_in_clear_have_no_steps():
    history = simulate(CONSTANT_RATE.replace({"rounds.secure_aggregation": None}))
    assert history.secure_steps is None
    assert history.column("participations", "uplink_bits").tolist() == [32_000.0] * 8


def test_every_client_stays():
    """Steps of 1 + 1 s (no work), the participation of 1 + 2 + 1 s, and 2 s to take masks away: 6 + 4 + 2 = 12 s."""
    history, _, learner, _ = run()
    assert history.column("rounds", "end_s").tolist() == [12.0]
    assert learner.aggregated == [([0, 1, 2, 3], [0.25] * 4)]
    row = history.explain().to_pylist()[0]
    assert (row["before_s"], row["compute_s"], row["waiting_s"], row["unmask_s"]) == (6.0, 2.0, 0.0, 2.0)


@pytest.mark.parametrize("step", range(4))
def test_a_client_that_is_lost_in_a_step_is_not_part_of_the_following_ones(step):
    """Client 3 leaves half a second into a step; the others go on, and messages count the clients that are left."""
    history, _, learner, _ = run({3: step})
    asked = [len(in_step(history, one)) for one in range(4)]
    # The last step asks those that have delivered; in it, client 3 is lost after its update has arrived.
    assert asked == [4 if one <= step else 3 for one in range(3)] + [4 if step == 3 else 3]
    lost = [row for row in in_step(history, step) if row["client"] == 3]
    assert [(row["outcome"], row["cut_in"]) for row in lost] == [("dropped", "downlink")]
    shared = [3, 3, 4, 4][step]
    with_keys = 3 if step == 0 else 4
    assert {row["downlink_bits"] for row in in_step(history, 1) if row["cut_in"] is None} == {512.0 * (with_keys - 1)}
    assert {row["downlink_bits"] for row in in_step(history, 2) if row["cut_in"] is None} == {512.0 * (shared - 1)}
    assert {row["uplink_bits"] for row in in_step(history, 3) if row["cut_in"] is None} == {256.0 * shared}
    assert learner.aggregated[0][0] == ([0, 1, 2, 3] if step == 3 else [0, 1, 2])
    assert history.column("rounds", "selected").tolist() == [4 if step == 3 else 3]


def test_a_client_that_is_lost_with_its_update_costs_the_server_masks():
    """3 of 4 deliver: 3 own masks and 3 with the lost client, of 0.5 s; the deadline ends the wait at 6 + 10 s."""
    history, _, learner, _ = run({3: 4}, options={"server_mask_s": 0.5})
    assert learner.aggregated[0][0] == [0, 1, 2]
    assert history.column("rounds", "end_s").tolist() == [6.0 + 10.0 + 2.0 + 6 * 0.5]
    assert {row["uplink_bits"] for row in in_step(history, 3)} == {4 * 256.0}


@pytest.mark.parametrize("step", range(5))
def test_below_the_threshold_the_round_yields_nothing(step):
    """Two of four are lost in a step, and three are needed."""
    history, _, learner, _ = run({2: step, 3: step}, threshold=0.75, count=2)
    assert not learner.aggregated
    assert history.column("rounds", "model_version").tolist() == [0, 0]
    assert history.rounds.num_rows == 2
    if step < 3:
        assert history.participations.num_rows == 0
        assert [len(in_step(history, one)) for one in range(4)] == [8 if one <= step else 0 for one in range(4)]
    else:
        fates = history.column("participations", "fate").tolist()
        assert set(fates) == ({"wasted-unmerged"} if step == 3 else {"wasted-unmerged", "wasted-dropped"})
        assert len(in_step(history, 3)) == (8 if step == 3 else 0), "those that have delivered are too few to ask"


@pytest.mark.parametrize("policy", [QuantileDeadline(initial_s=10.0), KFastest(k=1), MovingAverage(initial_s=10.0)])
def test_a_round_without_clients_tells_a_policy_nothing(policy):
    """All four are lost half a second into the first step of each round."""
    history, *_ = run(dict.fromkeys(range(4), 0), policy=policy, count=3)
    assert history.column("rounds", "end_s").tolist() == [0.5, 1.0, 1.5]
    assert history.column("rounds", "selected").tolist() == [0, 0, 0]


def test_a_limit_does_not_grow_with_a_round_without_clients():
    """Client 0 is lost with its update in rounds 1 and 3, after 4 s and after 8 s, and in round 2 at once."""
    lost = LostIn({0: {1: 4, 2: 0, 3: 4}.get})
    history, *_ = run(policy=MovingAverage(initial_s=4.0, growth=2.0), clients=1, count=3, dropout=lost)
    assert history.column("rounds", "duration_s").tolist() == [6.0 + 4.0, 0.5, 6.0 + 8.0]


def test_clients_are_there_or_not_as_of_the_step_that_begins():
    """Client 0 takes 2 s up, so that steps begin at 0, 3 and 6 s, and the model is sent at 9 s.

    Client 1 goes offline at 11 s, in its work. The links of the others are down before the second step begins, that of
    client 3 beyond it.
    """
    there, always = [(0, 11), (90, 99)], [(0, 99)]
    history, *_ = run(
        policy=Deadline(deadline_s=9),
        up_s=[2, 1, 1, 1],
        presence=available_in(always, there, always, always),
        links_up=available_in(always, always, [(0, 2.2), (2.8, 99)], [(0, 2.5), (3.5, 99)]),
    )
    assert [(row["end_s"], row["outcome"]) for row in in_step(history, 1) if row["client"] == 3] == [(3.0, "dropped")]
    ends = [(row["client"], row["end_s"], row["outcome"]) for row in history.participations.to_pylist()]
    assert sorted(ends) == [(0, 14.0, "delivered"), (1, 11.0, "dropped"), (2, 13.0, "delivered")]


def test_the_server_waits_for_a_step_as_long_as_it_says():
    """Client 3 takes 5 s up, and the server 2.5 s at most for each step: 2 + 2 + 2 s without it, once it is cut off."""
    history, _, learner, _ = run(policy=WaitForAll(), up_s=[1, 1, 1, 5], options={"wait_s": 2.5})
    first = in_step(history, 0)
    assert [(row["outcome"], row["end_s"]) for row in first] == [*[("delivered", 2.0)] * 3, ("late", 2.5)]
    assert history.column("participations", "start_s").tolist() == [6.5] * 3
    assert learner.aggregated[0][0] == [0, 1, 2]


def test_clients_that_share_a_medium_share_it_in_each_step():
    """A pipe of 1 bit/s up: with the shares of messages of 1 s each, n clients together take as long as their bits."""
    secure = SecureParts.of(Bonawitz(key_bits=0.5, share_bits=0.5, threshold=0.5, value_bits=1), 2, 2, Streams(0))
    links = Pipe([0.0, 0.0], [0.0, 0.0], up=EqualSharing)
    history, *_ = serve(WaitForAll(), [0.0] * 2, [0.0] * 2, [0.0] * 2, links=links, secure=secure)
    # Up: 2 keys of half a bit each; 2 shares for one other; nothing; and 2 shares. Both clients send at the same time.
    ends_s = [[row["end_s"] for row in in_step(history, step)] for step in range(4)]
    masked = 2 * (1 / 32) * 2
    assert ends_s == [[2.0] * 2, [4.0] * 2, [4.0] * 2, pytest.approx([4.0 + masked + 2.0] * 2)]


def test_masks_take_each_client_its_own_time():
    history, *_ = run(clients=3, options={"mask_s": (0.5, 1.0, 2.0)})
    assert [row["compute_s"] for row in in_step(history, 2)] == [1.5, 3.0, 6.0]


def test_a_crash_of_the_server_ends_a_step():
    """The server is down from 2.5 to 3.5 s, in the second step; the next round begins with keys again."""
    restart = ServerRestart(at_s=(2.5,), down_s=1.0)
    history, _, learner, _ = run(server_restart=restart, count=2)
    assert history.column("rounds", "ended_by").tolist() == ["restart", "enough"]
    assert [row["outcome"] for row in in_step(history, 1)] == ["late"] * 4 + ["delivered"] * 4
    assert history.column("rounds", "end_s").tolist() == [2.5, 3.5 + 12.0]
    assert len(learner.aggregated) == 1


def test_a_crash_while_masks_are_taken_away_costs_a_battery_nothing_twice():
    """Each bit up costs 1/512 J: 1 J of keys, 3 J of shares, 18/512 J of masked update, 2 J to take masks away.

    The server crashes as the last message is half sent. A number of an update has 32 bits in clear.
    """
    power = batteries([50.0] * 4, send=1 / 512)
    restart = ServerRestart(at_s=(11.5,), down_s=1.0)
    history, *_ = run(server_restart=restart, batteries=power, count=1)
    assert history.column("rounds", "ended_by").tolist() == ["restart"]
    spent = 1.0 + 3.0 + (18 / 32) / 512 + 1.0
    assert power.charge_j(np.arange(4), 99.0).tolist() == pytest.approx([50.0 - spent] * 4)
    drawn = history.column("secure_steps", "energy_j").sum() + history.column("participations", "energy_j").sum()
    assert drawn == pytest.approx(4 * spent)


def test_late_clients_that_go_on_are_not_part_of_the_sum():
    """Client 3 takes 4 s up and is late by 1 s: its masked update arrives while the others send their shares."""
    history, _, learner, _ = run(policy=Deadline(deadline_s=6.0), up_s=[1, 1, 1, 4], late=Drop(), count=2)
    assert [updates for updates, _ in learner.aggregated] == [[0, 1, 2]] * 2
    assert [row["client"] for row in in_step(history, 3)] == [0, 1, 2] * 2
    assert history.column("participations", "fate").tolist().count("wasted-late") == 2
    late = [row for row in history.participations.to_pylist() if row["client"] == 3]
    assert [row["outcome"] for row in late] == ["late"] * 2
    assert late[0]["end_s"] == late[0]["start_s"] + 7.0


def test_a_step_that_waits_for_ever_is_refused():
    with pytest.raises(ScenarioError, match="the uplink of client 1 would take inf s; secure aggregation waits"):
        run(clients=2, up_s=[1, np.inf])


EDGES = {"grouping": {"kind": "order", "count": 2}, "backhaul": "none"}
QUARTERS = {"kind": "trimmed-mean", "share": 0.1}
REFUSED = {
    "fedbuff": {"rounds.policy": {"kind": "fedbuff", "concurrency": 2, "buffer": 2}},
    "safa": {"rounds.policy": {"kind": "safa", "share": 0.5, "max_wait_s": 5.0, "lag": 1}},
    "stale": {"rounds.late": "stale"},
    "trimmed-mean": {"learning": {"data": "digits", "aggregation": QUARTERS}, "rounds.minimum_updates": 4},
    "top-k": {"learning": {"data": "digits", "compression": {"kind": "top-k", "share": 0.1}}},
    "heterofl": {"learning": {"data": "digits", "algorithm": {"kind": "heterofl", "widths": [1.0, 0.5]}}},
    "divfl": {"selector": {"kind": "divfl", "cohort": 2}},
}


@pytest.mark.parametrize("kind", REFUSED)
def test_what_needs_a_single_update_is_refused_in_words(kind):
    with pytest.raises(ScenarioError, match=rf"'{kind}' is not allowed; .*rounds.secure_aggregation") as refused:
        CONSTANT_RATE.replace(REFUSED[kind])
    assert "allowed:" in str(refused.value)


def test_edge_servers_have_steps_of_their_own():
    history = simulate(CONSTANT_RATE.replace({"rounds.edges": EDGES}))
    rows = history.secure_steps.to_pylist()
    assert {(row["edge"], row["client"]) for row in rows} == {(0, 0), (0, 1), (1, 2), (1, 3)}
    # Two clients at each: one other, so that shares have 512 bits.
    assert {row["uplink_bits"] for row in rows if row["step"] == "share-keys"} == {512.0}
