"""Batteries in rounds worked by hand: where they run empty, what they pay, and when they can take part again."""

import numpy as np
import pytest
from hypothesis import assume, example, given, strategies as st

from fedsim.devices import EnergyDemand
from fedsim.devices.availability.traces import Intervals, TraceAvailability
from fedsim.errors import AuditError, ScenarioError
from fedsim.network.medium.disciplines import EqualSharing, FirstCome, MinimumMakespan
from fedsim.network.medium.multicast import Multicast
from fedsim.privacy import GeometricBudget
from fedsim.rounds import Deadline, WaitForAll
from tests.support.stories import rows
from tests.support.worlds import Pipe, batteries, serve

# Every client passes 10 samples, and messages have one bit: 3 J down, 5 J of work, 4 J up.
PRICES = {"receive": 3.0, "sample": 0.5, "send": 4.0}
RULES = {"equal": EqualSharing, "first-come": FirstCome, "minimum-makespan": MinimumMakespan}
ROW = ("downlink_s", "compute_s", "uplink_s", "end_s", "downlink_bits", "uplink_bits", "energy_j", "outcome", "cut_in")


def alone(phases_s, costs_j, charge_j, leaves_s, deadline_s):
    """Return the row of a client that ends in the first phase that it cannot pay for, or in which it is cut off."""
    cut_s, end_s, left_j = min(leaves_s, deadline_s), 0.0, charge_j
    spent_s, shares, outcome, cut_in = [0.0] * 3, [0.0] * 3, "delivered", None
    for phase, (length_s, cost_j) in enumerate(zip(phases_s, costs_j, strict=True)):
        paid = min(1.0, left_j / cost_j) if cost_j else 1.0
        passed = min(1.0, (cut_s - end_s) / length_s) if length_s else 1.0
        shares[phase] = share = min(paid, passed)
        assume(share == 1.0 or abs(paid - passed) > 1e-9)
        spent_s[phase] = share * length_s
        end_s, left_j = end_s + share * length_s, left_j - share * cost_j
        if share < 1.0:
            outcome = "late" if passed < paid and deadline_s < leaves_s else "dropped"
            cut_in = ("downlink", "compute", "uplink")[phase]
            break
    return *spent_s, end_s, shares[0], shares[2], charge_j - left_j, outcome, cut_in


quarters = st.integers(0, 16).map(lambda number: number / 4)
prices = st.integers(0, 8).map(lambda number: number / 8)


@given(
    st.lists(st.tuples(*[quarters] * 3, st.integers(1, 60), quarters | st.just(99.0)), min_size=1, max_size=5),
    st.fixed_dictionaries(dict.fromkeys(("receive", "sample", "work_w", "send"), prices)),
    st.tuples(prices, prices),
    quarters | st.just(50.0),
    st.booleans(),
)
@example(
    [(0.0, 0.0, 0.0, 1, 99.0)], {"receive": 0.125, "sample": 0.0, "work_w": 0.0, "send": 0.0}, (1.0, 0.0), 1.0, True
)
def test_a_battery_lasts_as_long_as_it_pays_bits_samples_and_seconds(lines, prices, radio_w, deadline_s, multicast):
    """Dedicated links, or one multicast of 1 s for all; who leaves and the deadline tie with no end of a phase."""
    down_s, work_s, up_s, charge_j, leaves_s = map(list, zip(*lines, strict=True))
    down_s = [1.0] * len(lines) if multicast else down_s
    leaves_s, deadline_s = np.array(leaves_s) + 0.125, deadline_s + 0.0625
    history, *_ = serve(
        *(Deadline(deadline_s=deadline_s), down_s, work_s, up_s),
        leaves_s=leaves_s,
        links=Pipe(down_s, up_s, down=Multicast) if multicast else None,
        batteries=batteries(charge_j, **prices, radio_w=radio_w),
        budget=GeometricBudget(epsilon=20.0, eta=0.1),
    )
    expected = []
    for phases_s, charged_j, left_s in zip(zip(down_s, work_s, up_s, strict=True), charge_j, leaves_s, strict=True):
        costs_j = (
            prices["receive"] + radio_w[0] * phases_s[0],
            10 * prices["sample"] + prices["work_w"] * phases_s[1],
            prices["send"] + radio_w[1] * phases_s[2],
        )
        expected.append(alone(phases_s, costs_j, charged_j, left_s, deadline_s))
    assert rows(history.participations, *ROW) == [pytest.approx(row) for row in expected]
    charged = [epsilon > 0 for (epsilon,) in rows(history.participations, "epsilon")]
    assert charged == [row[-1] in {None, "uplink"} for row in expected]
    ends_s = [row[3] if row[-1] is None else deadline_s for row in expected]
    assert history.column("rounds", "duration_s").tolist() == [max(ends_s)]


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        # Two uplinks of 1 bit over 1 bit/s, from 0 s on, at 0.5 W; client 1 has 0.75 J for 1.5 s.
        # Shares of a half: client 0 has 0.25 bit to go at 1.5 s, and the pipe to itself.
        (EqualSharing, [(1.75, 0.0, 1.0, 0.875, "delivered"), (1.5, 0.0, 0.75, 0.75, "dropped")]),
        # Client 1 waits 1 s, which costs nothing, and sends for 1 s.
        (FirstCome, [(1.0, 0.0, 1.0, 0.5, "delivered"), (1.0, 1.0, 1.0, 0.5, "delivered")]),
    ],
)
def test_time_on_a_shared_medium_is_paid_and_its_queue_is_not(rule, expected):
    power = batteries([9.0, 0.75], radio_w=(0.0, 0.5))
    links = Pipe([0, 0], [1, 1], up=rule)
    history, *_ = serve(Deadline(deadline_s=50), [0] * 2, [0] * 2, [1] * 2, links=links, batteries=power)
    found = rows(history.participations, "uplink_s", "queue_s", "uplink_bits", "energy_j", "outcome")
    assert found == [pytest.approx(row) for row in expected]


def test_after_a_shared_downlink_the_rest_of_the_charge_pays_for_work_and_a_dedicated_uplink():
    """Two downlinks share 1 bit/s: 2 s at 1 W. Client 0 has 3 J left for 5 J of work, client 1 7 J: 2 J for 4 s up."""
    power = batteries([5.0, 9.0], sample=0.5, radio_w=(1.0, 0.5))
    links = Pipe([1, 1], [8, 8], down=EqualSharing)
    history, *_ = serve(Deadline(deadline_s=50), [1] * 2, [4] * 2, [8] * 2, links=links, batteries=power)
    assert rows(history.participations, *ROW) == [
        (2.0, pytest.approx(2.4), 0.0, pytest.approx(4.4), 1.0, 0.0, 5.0, "dropped", "compute"),
        (2.0, 4.0, 4.0, 10.0, 1.0, 0.5, 9.0, "dropped", "uplink"),
    ]


ZERO_LENGTH = [
    # 3 J down and 5 J of work that takes no time; the client leaves at the end of the downlink, of the work, or at 0 s.
    (([2], [0], [8], 2.0), 4.0, (2.0, 0.0, 0.0, 2.0, 1.0, 0.0, 3.0, "dropped", "compute")),
    (([0], [0], [8], 0.0), 4.0, (0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 3.0, "dropped", "compute")),
    # A downlink that takes no time, of which the battery pays a third.
    (([0], [4], [8], 0.0), 1.0, (0.0, 0.0, 0.0, 0.0, 1 / 3, 0.0, 1.0, "dropped", "downlink")),
    # It lasts, and leaves at the same instant: then it is cut in the upload.
    (([0], [0], [8], 0.0), 9.0, (0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 8.0, "dropped", "uplink")),
]


@pytest.mark.parametrize(("times", "charge_j", "expected"), ZERO_LENGTH)
def test_a_client_that_leaves_as_its_battery_runs_empty_does_not_pass_a_phase_of_no_length(times, charge_j, expected):
    *times, leaves_s = times
    history, *_ = serve(Deadline(deadline_s=50), *times, leaves_s=[leaves_s], batteries=batteries([charge_j], **PRICES))
    assert rows(history.participations, *ROW) == [pytest.approx(expected)]


SMALLEST = 5e-324


@pytest.mark.parametrize(
    ("capacity_j", "prices", "cut_in"),
    [
        # A share of the downlink that is rounded to 0: nothing is due for the only quantum of energy that was spent.
        (SMALLEST, {"receive": 3.0}, "downlink"),
        (2 * SMALLEST, {"receive": 3.0, "work_w": SMALLEST}, "downlink"),
        (1000 * SMALLEST, {"sample": 29 * SMALLEST, "receive": 800 * SMALLEST}, "compute"),
    ],
)
def test_the_audit_allows_for_the_rounding_of_the_smallest_energies(capacity_j, prices, cut_in):
    """A float knows 5e-324 J and nothing smaller, so that products of prices and shares are off by multiples of it."""
    power = batteries([capacity_j], **prices, capacity=capacity_j, least=SMALLEST)
    history, *_ = serve(Deadline(deadline_s=50), [2], [4], [8], batteries=power)
    assert rows(history.participations, "energy_j", "outcome", "cut_in") == [(capacity_j, "dropped", cut_in)]


SHARED = {
    "equal": [(0.0, 1.0, 1.0, 0.5, "dropped"), (0.0, 1.5, 1.5, 1.0, "delivered")],
    "first-come": [(0.0, 0.5, 0.5, 0.5, "dropped"), (0.5, 1.0, 1.5, 1.0, "delivered")],
    "minimum-makespan": [(0.0, 1.5, 1.5, 0.5, "dropped"), (0.0, 1.5, 1.5, 1.0, "delivered")],
    "multicast": [(0.0, 0.5, 0.5, 0.5, "dropped"), (0.0, 1.0, 1.0, 1.0, "delivered")],
}


@pytest.mark.parametrize(("way", "rule"), [*(("down", rule) for rule in SHARED), *(("up", rule) for rule in RULES)])
def test_a_shared_transfer_ends_with_the_bits_that_the_battery_pays_for(way, rule):
    """One has 2 J for half a bit, the other 4 J for one; the pipe carries a bit per second."""
    links = Pipe([0] * 2, [0] * 2, **{way: {**RULES, "multicast": Multicast}[rule]})
    power = batteries([2.0, 4.0], **{"receive" if way == "down" else "send": 4.0})
    history, *_ = serve(Deadline(deadline_s=9), [0] * 2, [0] * 2, [0] * 2, links=links, batteries=power)
    columns = ("queue_s", f"{way}link_s", "end_s", f"{way}link_bits", "outcome")
    assert rows(history.participations, *columns) == SHARED[rule]
    assert rows(history.participations, "energy_j", "cut_in") == [(2.0, f"{way}link"), (4.0, None)]
    if way == "up":
        assert links.up_medium.book().received == 1.5


def test_after_a_shared_downlink_a_shared_uplink_ends_with_the_bits_that_are_paid_for():
    """Both upload from 5 s on; the first has 2 J left of 4."""
    links = Pipe([0] * 2, [0] * 2, down=Multicast, up=EqualSharing)
    power = batteries([10.0, 12.0], **PRICES)
    history, *_ = serve(Deadline(deadline_s=50), [0] * 2, [4] * 2, [0] * 2, links=links, batteries=power)
    assert rows(history.participations, *ROW) == [
        (1.0, 4.0, 1.0, 6.0, 1.0, 0.5, 10.0, "dropped", "uplink"),
        (1.0, 4.0, 1.5, 6.5, 1.0, 1.0, 12.0, "delivered", None),
    ]


def test_a_round_starts_when_the_first_client_has_recharged():
    """12 J are spent by 14 s and 0 are left; at half a watt 12 J are back 24 s later."""
    power = batteries([12.0], **PRICES, capacity=12.0, gain_w=0.5, least=12.0)
    history, *_ = serve(WaitForAll(), [2], [4], [8], batteries=power, count=3)
    assert history.column("rounds", "start_s").tolist() == [0.0, 38.0, 76.0]
    assert history.column("participations", "energy_j").tolist() == [12.0] * 3


def test_clients_with_too_little_charge_are_no_candidates_and_the_run_ends_when_none_is_left():
    """From 30 and 20 J, 12 J a round, at least 12: both, then the first alone, then none ever again."""
    history, selector, *_ = serve(
        WaitForAll(), [2] * 2, [4] * 2, [8] * 2, batteries=batteries([30.0, 20.0], **PRICES, least=12.0), count=9
    )
    assert [view.client.tolist() for view in selector.views] == [[0, 1], [0]]
    assert history.column("rounds", "candidates").tolist() == [2, 1]
    assert history.column("evaluations", "round").tolist() == [1, 2]
    with pytest.raises(ScenarioError, match=r"devices\.energy: no round can start; all 1 batteries are below 2 J"):
        serve(WaitForAll(), [1], [1], [1], batteries=batteries([1.0], least=2.0))


def test_availability_and_charge_must_meet():
    """Charged enough at 10 s, online from 25 s on."""
    availability = TraceAvailability(Intervals.of([0, 0], [0, 25], [5, 90], [1000.0]), np.arange(1))
    power = batteries([2.0], **PRICES, gain_w=1.0, least=12.0)
    history, *_ = serve(Deadline(deadline_s=20), [2], [4], [8], batteries=power, presence=availability)
    assert history.column("rounds", "start_s").tolist() == [25.0]


def overcharge(self, members, done, emptied, spent_s, original=EnergyDemand.spent_j):
    return original(self, members, done, emptied, spent_s) * 1.01


def test_the_audit_refuses_energy_that_does_not_add_up(monkeypatch):
    monkeypatch.setattr(EnergyDemand, "spent_j", overcharge)
    with pytest.raises(AuditError, match=r"round 1, client \d: its? .*: its battery held"):
        serve(Deadline(deadline_s=50), [2, 2], [4, 4], [8, 8], batteries=batteries([40.0, 9.0], **PRICES))


times = st.floats(0.0, 5.0)
charges = st.floats(0.01, 30.0)


@given(
    st.lists(st.tuples(times, times, times, charges, st.floats(0.1, 30.0)), min_size=2, max_size=6),
    st.sampled_from([None, "equal", "first-come", "minimum-makespan", "multicast"]),
    st.sampled_from([None, "equal", "first-come", "minimum-makespan"]),
    st.floats(0.5, 12.0),
    st.sampled_from([-0.2, 0.0, 0.7]),
)
@example(
    [(0.0, 0.0, 0.0, 1.0, 1.0)] * 4 + [(0.29541005837452455, 6.3e-254, 1.0, 10.0, 0.29541005837452455)],
    None,
    None,
    1.0,
    -0.2,
)
def test_the_audit_agrees_with_energy_whatever_is_shared_and_cut(lines, down, up, deadline_s, gain_w):
    down_s, work_s, up_s, charge_j, leaves_s = map(list, zip(*lines, strict=True))
    media = {**RULES, "multicast": Multicast, None: None}
    links = Pipe(down_s, up_s, down=media[down], up=media[up])
    power = batteries(charge_j, **PRICES, capacity=30.0, gain_w=gain_w)
    history, *_ = serve(
        Deadline(deadline_s=deadline_s), down_s, work_s, up_s, links=links, batteries=power, leaves_s=leaves_s, count=4
    )
    whole_j = [row["energy_j"] for row in history.participations.to_pylist() if row["outcome"] == "delivered"]
    assert whole_j == pytest.approx([12.0] * len(whole_j))
