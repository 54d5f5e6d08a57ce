"""`check_discipline` passes for every rule of fedsim, and refuses rules that are broken, each for its own fault."""
# ruff: noqa: ARG005 (a rule takes what the contract gives)

import itertools
from typing import ClassVar

import pytest

from fedsim.network.medium.cell import SHARINGS
from fedsim.network.medium.disciplines import Discipline, EqualSharing, FirstCome, MinimumMakespan
from fedsim.testing import check_discipline
from tests.support.checks import passes, refuses
from tests.support.families import by_family, module
from tests.support.lies import lying, spoilt


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
@pytest.mark.parametrize("jobs", [2, pytest.param(10, marks=pytest.mark.slow)])
def test_rules_of_fedsim_are_sound(kind, jobs):
    check_discipline(SHARINGS.load(kind), jobs=jobs)


test_a_rule_of_a_users_own_is_sound_as_a_class_an_object_or_a_factory = passes(
    check_discipline, [LastCome, LastCome(), lambda: LastCome(*())], jobs=4
)


def mistaken(self):
    """Name a job that does not end next."""
    return EqualSharing.next_end(self)[0], max(self._virtual_finish, key=self._virtual_finish.get)


class Forgetful(EqualSharing):
    """Forgets the work done when a job joins."""

    def join(self, job):
        super().join(job)
        self._virtual_finish = {other: self._virtual_time + other.work for other in self._virtual_finish}


def strict(self, job):
    """Fail for a job that is not present."""
    self._remaining -= self._unscaled.pop(job) * self._scale


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


class Counting(EqualSharing):
    """Answers by what other objects were asked."""

    calls = 0

    def rate_hz(self, bandwidth_hz):
        Counting.calls += 1
        return bandwidth_hz + Counting.calls


test_a_broken_rule_is_refused_for_its_fault = refuses(
    check_discipline,
    [
        (
            lying(EqualSharing, "advance", lambda self, work: EqualSharing.advance(self, 0.9 * work)),
            r"the medium did .* Hz s, but the jobs were given",
        ),
        (
            lying(EqualSharing, "advance", lambda self, work: EqualSharing.advance(self, 2.0 * work)),
            r"was given .* Hz s, more than its work|the medium did .* Hz s, but",
        ),
        (spoilt(FirstCome, "next_end", lambda end: (end[0] / 2, end[1])), r"next_end said"),
        (lying(EqualSharing, "next_end", mistaken), r"next_end said that job \d+ ends next, but it has"),
        # A rule that fails late: the whole trial runs before.
        pytest.param(Forgetful, r"join changed the work done for job", marks=pytest.mark.slow),
        (lying(MinimumMakespan, "leave", strict), r"Lie.leave of a job that is not present failed with KeyError"),
        (
            lying(FirstCome, "in_service", lambda self: list(self._queue)[-1:] or FirstCome.in_service(self)),
            r"in_service did not name it",
        ),
        (Lingering, r"in_service named job \d+, which is not present"),
        (lying(FirstCome, "in_service", lambda self: ()), r"in_service named no job, though some are present"),
        (Common, r"Common"),
        (Marking, r"Marking.join failed with FrozenInstanceError"),
        (lying(EqualSharing, "rate_hz", lambda self, bandwidth_hz: 0.0), r"rate_hz returned 0.0"),
        (spoilt(EqualSharing, "next_end", lambda end: (float("inf"), end[1])), r"next_end returned inf Hz s"),
        (object(), "has no method prepare and no method join"),
        (itertools.repeat(FirstCome()).__next__, "returned the same object twice"),
        (Counting, r"two objects with the same jobs answer differently"),
    ],
)
