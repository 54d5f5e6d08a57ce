"""`check_discipline` passes for every rule of fedsim, and refuses rules that are broken, each for its own fault."""

from typing import ClassVar

import pytest

from fedsim.errors import ContractError
from fedsim.network.medium.cell import SHARINGS
from fedsim.network.medium.disciplines import Discipline, EqualSharing, FirstCome, MinimumMakespan
from fedsim.testing import check_discipline
from tests.support.families import by_family, module


class LastCome(Discipline):
    """Serves the job that joined last, preempting the others: a sound rule of a user's own."""

    def __init__(self):
        self.left = {}

    def join(self, job):
        self.left[job] = job.work

    def leave(self, job):
        self.left.pop(job, None)

    def advance(self, work):
        self.left[self._last()] -= work

    def served(self, job):
        return job.work - self.left[job]

    def next_end(self):
        return self.left[self._last()], self._last()

    def in_service(self):
        return [self._last()] if self.left else []

    def _last(self):
        return next(reversed(self.left))


@pytest.mark.parametrize("kind", by_family(SHARINGS, module))
@pytest.mark.parametrize("jobs", [2, 10, pytest.param(40, marks=pytest.mark.slow)])
def test_rules_of_fedsim_are_sound(kind, jobs):
    check_discipline(SHARINGS.load(kind), jobs=jobs)


@pytest.mark.parametrize("given", [LastCome, LastCome(), lambda: LastCome(*())])
def test_a_rule_of_a_users_own_is_sound_as_a_class_an_object_or_a_factory(given):
    check_discipline(given, jobs=10)


class Wasteful(EqualSharing):
    def advance(self, work):
        super().advance(0.9 * work)


class Greedy(EqualSharing):
    def advance(self, work):
        super().advance(2.0 * work)


class Hasty(FirstCome):
    """Says that the next end is nearer than it is."""

    def next_end(self):
        left, job = super().next_end()
        return left / 2, job


class Mistaken(EqualSharing):
    """Names a job that does not end next."""

    def next_end(self):
        return super().next_end()[0], max(self._virtual_finish, key=self._virtual_finish.get)


class Forgetful(EqualSharing):
    """Forgets the work done when a job joins."""

    def join(self, job):
        super().join(job)
        self._virtual_finish = {other: self._virtual_time + other.work for other in self._virtual_finish}


class Strict(MinimumMakespan):
    """Fails for a job that is not present."""

    def leave(self, job):
        self._remaining -= self._unscaled.pop(job) * self._scale


class Silent(FirstCome):
    """Serves jobs that it does not name."""

    def in_service(self):
        return list(self._queue)[-1:] or super().in_service()


class Lingering(EqualSharing):
    """Names jobs that have left."""

    def __init__(self):
        super().__init__()
        self.all = []

    def join(self, job):
        super().join(job)
        self.all.append(job)

    def in_service(self):
        return self.all


class Idle(FirstCome):
    def in_service(self):
        return ()


class Common(EqualSharing):
    """Keeps its jobs on the class."""

    given: ClassVar = {}

    def __init__(self):
        super().__init__()
        self._virtual_finish = self.given


class Marking(EqualSharing):
    """Writes on the jobs."""

    def join(self, job):
        job.mark = 1.0
        super().join(job)


class Stopped(EqualSharing):
    def rate_hz(self, bandwidth_hz):
        return 0.0


class Endless(EqualSharing):
    def next_end(self):
        return float("inf"), super().next_end()[1]


class Counting(EqualSharing):
    """Answers by what other objects were asked."""

    calls = 0

    def rate_hz(self, bandwidth_hz):
        Counting.calls += 1
        return bandwidth_hz + Counting.calls


@pytest.mark.parametrize(
    ("broken", "why"),
    [
        (Wasteful, r"the medium did .* Hz s, but the jobs were given"),
        (Greedy, r"was given .* Hz s, more than its work|the medium did .* Hz s, but"),
        (Hasty, r"next_end said"),
        (Mistaken, r"next_end said that job \d+ ends next, but it has"),
        # A rule that fails late: the whole trial runs before.
        pytest.param(Forgetful, r"join changed the work done for job", marks=pytest.mark.slow),
        (Strict, r"Strict.leave of a job that is not present failed with KeyError"),
        (Silent, r"in_service did not name it"),
        (Lingering, r"in_service named job \d+, which is not present"),
        (Idle, r"in_service named no job, though some are present"),
        (Common, r"Common"),
        (Marking, r"Marking.join failed with FrozenInstanceError"),
        (Stopped, r"rate_hz returned 0.0"),
        (Endless, r"next_end returned inf Hz s"),
        (Counting, r"two objects with the same jobs answer differently"),
    ],
)
def test_a_broken_rule_is_refused_for_its_fault(broken, why):
    with pytest.raises(ContractError, match=why):
        check_discipline(broken)


def test_what_is_no_discipline_is_refused():
    with pytest.raises(ContractError, match="has no method prepare and no method join"):
        check_discipline(object())
    one = FirstCome()
    with pytest.raises(ContractError, match="returned the same object twice"):
        check_discipline(lambda: one)
