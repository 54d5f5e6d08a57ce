"""What a policy of one's own states is checked when its class is made, and what ends its rounds is recorded."""

from typing import ClassVar

import pytest

from fedsim.errors import ScenarioError
from fedsim.history.outcomes import RoundEnd
from fedsim.rounds import (
    POLICIES,
    AsynchronousPolicy,
    Deadline,
    RoundPolicy,
    ServerTraits,
    SynchronousPolicy,
    WaitForAll,
)
from fedsim.rounds.policies.late import LATE, LateRule
from tests.support.short_runs import timed
from tests.support.worlds import serve

THREE = ([1] * 3, [1, 3, 9], [1] * 3)


def ends(policy, **options):
    history, *_ = serve(policy, *THREE, **options)
    columns = [history.column("rounds", name).tolist() for name in ("end_s", "delivered", "ended_by")]
    return list(zip(*columns, strict=True))


class Limited(SynchronousPolicy):
    def enough(self, round_):
        return round_.everyone | round_.limit(4.0)


class Counting(RoundPolicy):
    """Looks at the clients in flight after each delivery, in two rounds of clients that need 3 s, 5 s and 11 s."""

    seen: ClassVar[list[int]] = []

    def wait(self, server, round_):
        for count in (1, 2):
            yield round_.delivered(count)
            self.seen.append(server.in_flight)
        return RoundEnd.ENOUGH


def test_clients_that_end_with_their_round_are_in_flight_in_it_alone():
    Counting.seen.clear()
    serve(Counting(), *THREE, count=2)
    assert Counting.seen == [2, 1, 2, 1]


class Own(RoundPolicy):
    """Clients 0 and 1 deliver at 3 s and 5 s."""

    after_s: float

    def wait(self, server, round_):
        two = round_.delivered(2)
        yield two | server.env.timeout(self.after_s)
        return RoundEnd.ENOUGH if two.triggered else RoundEnd.DEADLINE


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        (Limited(), (4.0, 1, "deadline")),
        (Own(after_s=4.5), (4.5, 1, "deadline")),
        (Own(after_s=7.0), (5.0, 2, "enough")),
        (Deadline(deadline_s=4.0), (4.0, 1, "deadline")),
        (Deadline(deadline_s=11.0), (11.0, 3, "enough")),
        (WaitForAll(), (11.0, 3, "enough")),
    ],
)
def test_what_the_policy_saw_is_recorded_as_the_end_of_a_round(policy, expected):
    assert ends(policy) == [expected]


def test_a_round_is_enough_though_its_limit_comes_a_rounding_error_before_the_last_delivery():
    """0.1 + 0.2 + 0.3 is one unit in the last place above 0.6."""
    history, *_ = serve(Deadline(deadline_s=0.6), [0.1], [0.2], [0.3])
    assert history.column("rounds", "ended_by").tolist() == ["enough"]


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("time_limits_s", "time_limit_s"),
        ("agregation", "aggregation"),
        ("trait", "traits"),
        ("take_ties", "takes_ties"),
    ],
)
def test_a_misspelt_name_is_refused_when_the_class_is_made(name, meant):
    with pytest.raises(TypeError, match=rf"Mine\.{name}: a policy has no such name; did you mean '{meant}'\?"):
        type("Mine", (Deadline,), {name: lambda *_: None, "__module__": __name__})


def test_names_of_helpers_and_options_are_free():
    class Mine(Deadline):
        limit_share: float = 0.5
        worst_case: ClassVar[int] = 3

        def shortest_s(self):
            return self.deadline_s * self.limit_share

    assert Mine(deadline_s=4.0).shortest_s() == 2.0


@pytest.mark.parametrize("base", [SynchronousPolicy, Deadline, AsynchronousPolicy])
def test_the_wait_of_a_kind_is_not_replaced(base):
    with pytest.raises(
        TypeError, match=r"Mine\.wait: a \w+Policy states when a round is over; allowed: derive from RoundPolicy"
    ):
        type("Mine", (base,), {"wait": lambda *_: None, "__module__": __name__})


class Unfinished(SynchronousPolicy):
    pass


class Misspelt(Deadline):
    @property
    def traits(self):
        return ServerTraits(cohort=3)


class Undecided(LateRule):
    def aggregation(self, learner):
        return None


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        ({"kind": f"{__name__}:Unfinished"}, "it has no method enough"),
        ({"kind": f"{__name__}:Misspelt", "deadline_s": 3.0}, r"traits: .*'cohort'; allowed: .*cohort_size"),
        ({"kind": "deadline", "deadlines_s": 3.0}, "did you mean 'deadline_s'"),
        ({"kind": "fedbuff", "concurency": 3}, "did you mean 'concurrency'"),
    ],
)
def test_a_policy_that_states_too_little_or_too_much_is_refused(policy, message):
    with pytest.raises(ScenarioError, match=message):
        timed(rounds={"count": 1, "policy": policy})


def test_a_late_rule_must_state_whether_it_cancels():
    with pytest.raises(ValueError, match="must say cancels"):
        LATE.make(Undecided())


FORGETFUL = {
    "deadline": {"deadline_s": 1.0},
    "wait-for-all": {},
    "k-fastest": {"k": 3},
    "quorum": {"share": 0.5, "max_wait_s": 1.0},
    "fedbuff": {"concurrency": 3},
    "safa": {"max_wait_s": 1.0},
}


@pytest.mark.parametrize("kind", FORGETFUL)
def test_a_policy_that_does_not_look_back_has_no_round_remembered(kind):
    assert POLICIES.make({"kind": kind, **FORGETFUL[kind]}).traits.remembered_rounds == 0
