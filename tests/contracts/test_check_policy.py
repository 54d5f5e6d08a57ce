"""`check_policy` passes every policy of fedsim and names what is wrong with broken ones."""

import itertools
from functools import cached_property
from typing import ClassVar

import pytest

from fedsim.errors import ContractError
from fedsim.history.outcomes import RoundEnd
from fedsim.rounds import POLICIES, AsynchronousPolicy, Deadline, RoundPolicy, ServerTraits, SynchronousPolicy
from fedsim.rounds.aggregation.rules import FedAvgRule
from fedsim.rounds.policies.asynchronous import FedBuff
from fedsim.testing import check_policy

POLICIES_OF_FEDSIM = {
    "adaptive-deadline": [{"initial_s": 2.0}, {"initial_s": 3.0, "quantile": 0.5, "window": 2, "longest_s": 4.0}],
    "deadline": [{"deadline_s": 3.5}, {"deadline_s": 2.0}],
    "fedasync": [{"concurrency": 2}, {"concurrency": 3, "give_up_s": 9.0, "max_staleness": 1}],
    "fedbuff": [{"concurrency": 3, "buffer": 2, "give_up_s": 10.0}, {"concurrency": 1}],
    "k-fastest": [{"k": 2}, {"k": 2, "max_wait_s": 2.0}],
    "moving-average": [{}, {"initial_s": 2.0, "target_share": 0.5, "growth": 1.5}],
    "pisces": [{"concurrency": 2}, {"concurrency": 3, "bound": 1, "give_up_s": 9.0, "max_staleness": 1}],
    "quorum": [{"share": 0.5, "max_wait_s": 4.0, "min_wait_s": 1.0}],
    "safa": [{"max_wait_s": 3.0, "share": 0.4}, {"max_wait_s": 2.0, "lag": 0}],
    "wait-for-all": [{}],
}


def test_every_policy_is_checked():
    assert set(POLICIES_OF_FEDSIM) == set(POLICIES.builtin)


@pytest.mark.parametrize(
    ("kind", "options"), [(kind, options) for kind, several in POLICIES_OF_FEDSIM.items() for options in several]
)
def test_the_policies_of_fedsim_keep_the_contract(kind, options):
    check_policy(POLICIES.make({"kind": kind, **options}))


class OwnDeadline(SynchronousPolicy):
    """A deadline of its own, stated where the round is."""

    def enough(self, round_):
        return round_.everyone | round_.limit(2.5)


class OwnRun(RoundPolicy):
    """A round that the policy runs itself."""

    def run(self, server, round_):
        cohort = yield from server.select(round_, None)
        server.dispatch(cohort, round_)
        yield round_.everyone | server.env.timeout(1.5)
        return RoundEnd.ENOUGH if round_.everyone.triggered else RoundEnd.DEADLINE


@pytest.mark.parametrize("policy", [OwnDeadline(), OwnRun()])
def test_policies_with_deadlines_of_their_own_keep_the_contract(policy):
    check_policy(policy)


class HiddenDeadline(SynchronousPolicy):
    def enough(self, round_):
        return round_.everyone | round_.env.timeout(2.5)


class Patient(SynchronousPolicy):
    def enough(self, round_):
        return round_.everyone


class Overdue(RoundPolicy):
    def time_limit_s(self, past):
        return 3.0

    def run(self, server, round_):
        cohort = yield from server.select(round_, None)
        server.dispatch(cohort, round_)
        yield server.env.timeout(10.0)
        return RoundEnd.DEADLINE


class Silent(Overdue):
    def run(self, server, round_):
        cohort = yield from server.select(round_, None)
        server.dispatch(cohort, round_)
        yield server.env.timeout(2.0)


class Idle(Overdue):
    def run(self, server, round_):
        yield server.env.timeout(1.0)
        return RoundEnd.DEADLINE


class NoGenerator(Overdue):
    def run(self, server, round_):
        return RoundEnd.ENOUGH


class Restarted(Silent):
    def run(self, server, round_):
        yield from super().run(server, round_)
        return RoundEnd.RESTART


class Forgetful(Deadline):
    def time_limit_s(self, past):
        past.rounds_s.clear()
        return 3.0


class Fickle(Deadline):
    def time_limit_s(self, past):
        return self.deadline_s + next(COUNTED)


class Growing(SynchronousPolicy):
    """The wait grows with every round of every run."""

    def enough(self, round_):
        return round_.everyone | round_.limit(0.2 + 0.1 * next(COUNTED))


COUNTED = itertools.count()


class Negative(Deadline):
    def time_limit_s(self, past):
        return -1.0


class NoEvent(Deadline):
    def enough(self, round_):
        return 3.0


class Sharing(FedBuff):
    @cached_property
    def _rule(self):
        return FedAvgRule(None)

    def aggregation(self, learner):
        return self._rule


class NoRule(Deadline):
    def aggregation(self, learner):
        return "average"


class Crowded(RoundPolicy):
    @property
    def traits(self):
        return ServerTraits(concurrency=2, buffer_size=1, overlaps_rounds=True)

    def run(self, server, round_):
        while not server.buffered and server.refill(round_, 5):
            yield server.next_arrival()
        return RoundEnd.ENOUGH


class Nothing(Deadline):
    @property
    def traits(self):
        return ServerTraits(cohort_size=0)


class Stopping(AsynchronousPolicy):
    updates_per_round: ClassVar = 1

    @property
    def traits(self):
        return ServerTraits(concurrency=1)

    def aggregation(self, learner):
        return FedAvgRule(learner)


class Twice(Overdue):
    def run(self, server, round_):
        cohort = yield from server.select(round_, None)
        server.dispatch(cohort, round_)
        server.dispatch(cohort, round_)
        return RoundEnd.ENOUGH


BROKEN = [
    (HiddenDeadline(), r"ended as enough, though no client had delivered; .* Round\.limit"),
    (Patient(), "never ended though traits.tolerates_losses is True .*a client that is lost"),
    (Overdue(), r"the round lasted 10\.0 s; time_limit_s says at most 3\.0 s"),
    (Silent(), "run returned None; it must be RoundEnd.ENOUGH or RoundEnd.DEADLINE"),
    (Restarted(), "run returned <RoundEnd.RESTART"),
    (Idle(), "run sent no client .*round 1"),
    (NoGenerator(), "it must be a generator"),
    (Forgetful(deadline_s=3), "time_limit_s changed the past rounds .*round 2"),
    (Fickle(deadline_s=3), "for the same past; it must be one number"),
    (Growing(), "used a second time"),
    (Negative(deadline_s=3), "it must be one number >= 0"),
    (NoEvent(deadline_s=3), "failed with "),
    (Sharing(concurrency=2), "returned the same rule twice"),
    (NoRule(deadline_s=3), "aggregation returned 'average'"),
    (Crowded(), r"refill was called for 5 clients; traits\.concurrency is 2"),
    (Nothing(deadline_s=3), "cohort_size: 0 is not allowed"),
    (Stopping(concurrency=1), "overlaps_rounds must be True"),
    (Twice(), "second cohort"),
    ("deadline", "is no policy"),
]


@pytest.mark.parametrize(("policy", "fault"), BROKEN, ids=[type(policy).__name__ for policy, _ in BROKEN])
def test_a_broken_policy_is_told_what_is_wrong(policy, fault):
    with pytest.raises(ContractError, match=fault):
        check_policy(policy)
