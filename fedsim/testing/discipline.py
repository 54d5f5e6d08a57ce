"""The contract of a sharing discipline, checked by driving one as a medium does."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from fedsim.errors import ContractError
from fedsim.network.medium.cell import SHARINGS
from fedsim.network.medium.disciplines import Discipline
from fedsim.network.radio.channel import Channel
from fedsim.network.radio.fading import Rayleigh
from fedsim.streams import Streams
from fedsim.testing.examination import Examination, at_least_two, maker

_TOLERANCE: Final = 1e-9
_CHANNEL: Final = Channel(np.array([1.0, 10.0, 100.0]), 1e6, Rayleigh(), "fading-uplink", Streams(0))
"""Of three clients whose mean efficiencies are those of the jobs."""


def check_discipline(
    discipline_or_factory: Discipline | Callable[[], Discipline], *, jobs: int = 40, seed: int = 0
) -> None:
    """Check that a sharing rule keeps the contract of `Discipline`; return nothing if it does.

    Jobs join it one after another, together, and while others are in service; they end or leave before. Every time

    * the work done for the jobs adds up to the work of the medium, and no job receives more than its own work,
    * only jobs in service receive work; these have joined, there is one while any job is present, and they change
      with `join` and `leave` only,
    * `next_end` names a job that is present, and this job has ended when the medium has done that much work and not
      before,
    * `join` and `leave` change no work that is done, and `leave` of a job that is not present changes nothing,
    * jobs are left as they are, and `rate_hz` is a number above 0,
    * a discipline without jobs serves new ones, and two objects of one class share no state and answer alike.

    Parameters
    ----------
    discipline_or_factory : a discipline without jobs, deep-copied for each use, or a callable that returns a new one
    jobs : number of jobs of the usual trial; at least 2
    seed : whole number of at least 0

    Raises
    ------
    ContractError
        Naming the class, what it did, and the trial and step in which it did it.
    ValueError
        If ``jobs`` is too small to check anything.

    Examples
    --------
    >>> from fedsim.network import SHARINGS
    >>> check_discipline(SHARINGS.load('equal'), jobs=8)
    """
    at_least_two(jobs=jobs)
    fresh = _factory(discipline_or_factory)
    for trial in _trials(jobs, seed):
        alone, one, other = (_Medium(fresh(), trial) for _ in range(3))
        list(alone.steps())
        list(zip(one.steps(), other.steps(), strict=True))  # step by step, both at the same time
        fault = "join: two objects with the same jobs answer differently; all state must belong to the object"
        one.law(alone.answers == one.answers == other.answers, fault)


@dataclass(frozen=True)
class _Trial:
    name: str
    works: Sequence[float]
    steps: Sequence[tuple[str, float]]


def _trials(jobs: int, seed: int) -> Iterator[_Trial]:
    rng = np.random.default_rng([seed, jobs])
    yield _Trial("one job", [2.0], [("join", 0), ("part", 0.5), ("end", 0)])
    yield _Trial("a job that leaves", [2.0, 3.0], [("join", 0), ("join", 0), ("part", 0.5), ("leave", 0.9), ("end", 0)])
    works = rng.exponential(1.0, jobs).tolist()
    yield _Trial("jobs that join together", works, [("join", 0)] * jobs + [("part", 0.5), ("end", 0)] * jobs)
    far = (10.0 ** rng.uniform(-6, 6, jobs)).tolist()
    yield _Trial("works far apart", far, [("join", 0)] * jobs + [("end", 0)] * jobs)
    again = [("join", 0.0), ("join", 0.0), ("part", 0.3), ("end", 0.0), ("leave", 0.0), ("part", 0.5)] * (jobs // 2)
    yield _Trial("a medium that empties again and again", works, again)
    kinds = rng.choice(["join", "leave", "part", "end"], 4 * jobs, p=[0.4, 0.1, 0.3, 0.2]).tolist()
    yield _Trial("jobs that come and go", works, list(zip(kinds, rng.random(4 * jobs).tolist(), strict=True)))


@dataclass(frozen=True, eq=False)
class _Job:
    bits: float
    work: float
    name: str


class _Medium(Examination):
    """A medium without a clock: it takes the steps of a trial and keeps books of its own."""

    def __init__(self, discipline: Discipline, trial: _Trial) -> None:
        super().__init__(discipline, f"in the trial with {trial.name}, step 0")
        self.discipline, self.trial = discipline, trial
        self.answers: list[tuple[Any, ...]] = []
        self._present: dict[_Job, float] = {}
        self._joined = 0
        self._slack = _TOLERANCE * math.fsum(trial.works)
        self.ask("prepare", lambda: discipline.prepare(_CHANNEL))

    def steps(self) -> Iterator[None]:
        for number, (kind, share) in enumerate(self.trial.steps, start=1):
            self.place = f"in the trial with {self.trial.name}, step {number}"
            if kind == "join":
                if self._joined < len(self.trial.works):
                    self._join()
            elif self._present:
                {"leave": self._leave, "part": self._advance, "end": self._end}[kind](share)
            self._look()
            yield

    def _join(self) -> None:
        work = self.trial.works[self._joined]
        # Efficiencies of 0.8, 2.9 and 5.9 bit/s/Hz are those of the channel's three clients.
        job = _Job(work * (0.8, 2.9, 5.9)[self._joined % 3], work, f"job {self._joined}")
        self._joined += 1
        self._change("join", self.discipline.join, job)
        self._present[job] = 0.0

    def _leave(self, share: float) -> None:
        self._remove(list(self._present)[int(share * len(self._present))])

    def _remove(self, job: _Job) -> None:
        del self._present[job]
        for method in ("leave", "leave of a job that is not present"):
            self._change(method, self.discipline.leave, job)

    def _end(self, _share: float) -> None:
        _, job = self._next_end()
        self._advance(1.0)
        has, fault = self._present[job], f"next_end said that {job.name} ends next, but it has"
        self.law(abs(has - job.work) <= self._slack, f"{fault} {has} of {job.work} Hz s then")
        self._remove(job)

    def _advance(self, share: float) -> None:
        left, _ = self._next_end()
        work, before, served_before = left * share, dict(self._present), set(self._in_service())
        self.ask("advance", self.discipline.advance, work)
        for job, had in before.items():
            has, slack, given = self._served(job), self._slack, f"advance: {job.name} was given"
            self._present[job] = has
            self.law(has >= had - slack, f"advance took work from {job.name}: {had} Hz s, then {has}")
            self.law(has <= job.work + slack, f"{given} {has} Hz s, more than its work of {job.work}")
            self.law(has <= had + slack or job in served_before, f"{given} work, but in_service did not name it")
        done = math.fsum(self._present.values()) - math.fsum(before.values())
        right = abs(done - work) <= self._slack
        self.law(right, f"advance: the medium did {work} Hz s, but the jobs were given {done}")
        if share < 1.0:
            self.law(set(self._in_service()) == served_before, "in_service changed without join or leave")
            now, fault = self._next_end()[0], f"next_end said {left} Hz s, and another number after {work} of them"
            self.law(abs(now - (left - work)) <= self._slack, f"{fault}: {now}; it must be {left - work}")

    def _look(self) -> None:
        """Ask for everything, and keep the answers."""
        rate_hz = self.ask("rate_hz", self.discipline.rate_hz, 1e6)
        self.law(0 < rate_hz < math.inf, f"rate_hz returned {rate_hz!r}; it must be a finite number above 0")
        served = sorted(job.name for job in self._in_service())
        left, job = self._next_end() if self._present else (0.0, None)
        self.answers.append((rate_hz, served, left, job and job.name, [self._served(job) for job in self._present]))

    def _in_service(self) -> list[_Job]:
        served: list[Any] = list(self.ask("in_service", self.discipline.in_service))
        for job in served:
            self.law(job in self._present, f"in_service named {getattr(job, 'name', job)}, which is not present")
        self.law(bool(served or not self._present), "in_service named no job, though some are present")
        return served

    def _next_end(self) -> tuple[float, _Job]:
        answer: Any = self.ask("next_end", self.discipline.next_end)
        if not (isinstance(answer, tuple) and len(answer) == 2 and answer[1] in self._present):
            raise self.fault(f"next_end returned {answer!r}; it must be (work, job) with a job that is present")
        left, job = answer
        fault = f"next_end returned {left!r} Hz s; it must be a finite number of at least 0"
        self.law(-self._slack <= left < math.inf, fault)
        return max(0.0, left), job

    def _served(self, job: _Job) -> float:
        return float(self.ask("served", lambda: self.discipline.served(job)))

    def _change(self, method: str, call: Callable[[_Job], None], job: _Job) -> None:
        """Call join or leave, which must not change the work done for the other jobs."""
        self.ask(method, lambda: call(job))
        for other, had in self._present.items():
            has = self._served(other)
            fault = f"{method} changed the work done for {other.name} from {had} to {has} Hz s"
            self.law(abs(has - had) <= self._slack, fault)


def _factory(discipline_or_factory: Discipline | Callable[[], Discipline]) -> Callable[[], Discipline]:
    """Return a callable that makes new disciplines, refusing what is none."""
    make = maker(discipline_or_factory)
    one: object = make()
    if one is make():
        raise ContractError(f"{make!r} returned the same object twice; a factory must return a new one")
    if missing := SHARINGS.missing_methods(one):
        raise ContractError(
            f"{type(one).__name__} has no method {' and no method '.join(missing)}; derive from Discipline"
        )
    return make
