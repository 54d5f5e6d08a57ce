"""`check_policy` passes every policy of fedsim and names what is wrong with broken ones."""
# ruff: noqa: ARG005 (a policy takes what the contract gives)

import itertools
from functools import cached_property
from typing import ClassVar

from fedsim.history.outcomes import RoundEnd
from fedsim.rounds import POLICIES, AsynchronousPolicy, Deadline, RoundPolicy, ServerTraits, SynchronousPolicy
from fedsim.rounds.aggregation.rules import FedAvgRule
from fedsim.rounds.policies.asynchronous import FedBuff
from fedsim.testing import check_policy
from tests.golden import scenarios as golden
from tests.support.checks import passes, refuses
from tests.support.lies import lying

PISCES = [golden.OTHER_RULES[name]["rounds"]["policy"] for name in ("pisces", "pisces-bound")]
TABLES = [table for several in golden.POLICIES.values() for table in several] + PISCES


def test_every_policy_is_checked():
    assert {table["kind"] for table in TABLES} == set(POLICIES.builtin)


class OwnDeadline(SynchronousPolicy):
    """A deadline of its own, stated where the round is."""

    def enough(self, round_):
        return round_.everyone | round_.limit(2.5)


class OwnRun(RoundPolicy):
    """A wait of its own."""

    def wait(self, server, round_):
        yield round_.everyone | server.env.timeout(1.5)
        return RoundEnd.ENOUGH if round_.everyone.triggered else RoundEnd.DEADLINE


SOUND = [
    *map(POLICIES.make, [*(several[0] for several in golden.POLICIES.values()), PISCES[1]]),
    OwnDeadline(),
    OwnRun(),
]
test_sound_policies_keep_the_contract = passes(check_policy, SOUND)


def ending(answer):
    """Return a synchronous policy that has enough when a function of the round says so."""
    return lying(SynchronousPolicy, "enough", lambda self, round_: answer(round_))()


def limiting(answer):
    return lying(Deadline, "time_limit_s", answer)(deadline_s=3)


class Overdue(RoundPolicy):
    def time_limit_s(self, past):
        return 3.0

    def wait(self, server, round_):
        yield server.env.timeout(10.0)
        return RoundEnd.DEADLINE


class Silent(Overdue):
    def wait(self, server, round_):
        yield server.env.timeout(2.0)


class Restarted(Silent):
    def wait(self, server, round_):
        yield from super().wait(server, round_)
        return RoundEnd.RESTART


COUNTED = itertools.count()


def forgetting(self, past):
    past.rounds_s.clear()
    return 3.0


class Sharing(FedBuff):
    @cached_property
    def _rule(self):
        return FedAvgRule(None)

    def aggregation(self, learner):
        return self._rule


class Stopping(AsynchronousPolicy):
    updates_per_round: ClassVar = 1

    @property
    def traits(self):
        return ServerTraits(concurrency=1)

    def aggregation(self, learner):
        return FedAvgRule(learner)


test_a_broken_policy_is_told_what_is_wrong = refuses(
    check_policy,
    [
        (
            ending(lambda round_: round_.everyone | round_.env.timeout(2.5)),
            r"ended as enough, though no client had delivered; .* Round\.limit",
        ),
        (
            ending(lambda round_: round_.everyone),
            "never ended though traits.tolerates_losses is True .*a client that is lost",
        ),
        (Overdue(), r"the round lasted 10\.0 s; time_limit_s says at most 3\.0 s"),
        (Silent(), "wait returned None; it must be RoundEnd.ENOUGH or RoundEnd.DEADLINE"),
        (Restarted(), "wait returned <RoundEnd.RESTART"),
        (lying(Overdue, "wait", lambda self, server, round_: RoundEnd.ENOUGH)(), "it must be a generator"),
        (limiting(forgetting), "time_limit_s changed the past rounds .*round 2"),
        (limiting(lambda self, past: self.deadline_s + next(COUNTED)), "for the same past; it must be one number"),
        (ending(lambda round_: round_.everyone | round_.limit(0.2 + 0.1 * next(COUNTED))), "used a second time"),
        (limiting(lambda self, past: -1.0), "it must be one number >= 0"),
        (lying(Deadline, "enough", lambda self, round_: 3.0)(deadline_s=3), "failed with "),
        (Sharing(concurrency=2), "returned the same rule twice"),
        (
            lying(Deadline, "aggregation", lambda self, learner: "average")(deadline_s=3),
            "aggregation returned 'average'",
        ),
        (
            lying(Deadline, "traits", lambda self: ServerTraits(cohort_size=0))(deadline_s=3),
            "cohort_size: 0 is not allowed",
        ),
        (Stopping(concurrency=1), "overlaps_rounds must be True"),
        ("deadline", "is no policy"),
    ],
)
