"""The contract of a sharing discipline, checked by driving one as a medium does."""

import copy
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NoReturn, TypeVar

import numpy as np

from fedsim.errors import ContractError
from fedsim.network.medium.cell import SHARINGS
from fedsim.network.medium.disciplines import Discipline
from fedsim.network.radio.channel import Channel
from fedsim.network.radio.fading import Rayleigh
from fedsim.streams import Streams

T = TypeVar("T")

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
    """
    if jobs < 2:
        raise ValueError(f"jobs: {jobs!r} is not allowed; it must be at least 2")
    fresh = _factory(discipline_or_factory)
    for trial in _trials(jobs, seed):
        alone = _Medium(fresh(), trial).run()
        one, other = _Medium(fresh(), trial), _Medium(fresh(), trial)
        list(zip(one.steps(), other.steps(), strict=True))  # step by step, both at the same time
        if not alone == one.answers == other.answers:
            raise ContractError(
                f"{one.name}: two objects with the same jobs answer differently; all state must belong to the object "
                f"(in the trial with {trial.name})"
            )


@dataclass(frozen=True)
class _Trial:
    """Jobs and the steps in which they come and go.

    Attributes
    ----------
    works : of the jobs, in Hz s
    steps : ``("join", 0)``, ``("leave", share)`` of the job at a share of those present, ``("part", share)`` of the
        work until the next end, or ``("end", 0)``
    """

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
    """A job that cannot be changed."""

    bits: float
    work: float
    name: str


@dataclass
class _Medium:
    """A medium without a clock: it takes the steps of a trial and keeps books of its own.

    Attributes
    ----------
    answers : what the discipline has answered, step by step
    """

    discipline: Discipline
    trial: _Trial
    answers: list[tuple[Any, ...]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.name = type(self.discipline).__name__
        self._present: dict[_Job, float] = {}
        self._joined = self._step = 0
        self._slack = _TOLERANCE * math.fsum(self.trial.works)
        self._ask("prepare", lambda: self.discipline.prepare(_CHANNEL))

    def run(self) -> list[tuple[Any, ...]]:
        """Take all steps, and return the answers."""
        list(self.steps())
        return self.answers

    def steps(self) -> Iterator[None]:
        """Take the steps one by one."""
        for kind, share in self.trial.steps:
            self._step += 1
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
        self._ask("join", lambda: self.discipline.join(job))
        self._present[job] = 0.0
        self._unchanged("join")

    def _leave(self, share: float) -> None:
        job = list(self._present)[int(share * len(self._present))]
        self._remove(job)

    def _remove(self, job: _Job) -> None:
        del self._present[job]
        for _ in range(2):  # The second time the job is not present.
            self._ask("leave", lambda: self.discipline.leave(job))
            self._unchanged("leave")

    def _end(self, _share: float) -> None:
        _, job = self._next_end()
        self._advance(1.0)
        if abs(self._present[job] - job.work) > self._slack:
            self._refuse(
                f"next_end said that {job.name} ends next, but it has {self._present[job]} of {job.work} Hz s then"
            )
        self._remove(job)

    def _advance(self, share: float) -> None:
        left, _ = self._next_end()
        work, before, served_before = left * share, dict(self._present), set(self._in_service())
        self._ask("advance", lambda: self.discipline.advance(work))
        for other, had in before.items():
            has = self._present[other] = self._served(other)
            if has < had - self._slack:
                self._refuse(f"advance took work from {other.name}: {had} Hz s, then {has}")
            if has > other.work + self._slack:
                self._refuse(f"{other.name} was given {has} Hz s, more than its work of {other.work}")
            if has > had + self._slack and other not in served_before:
                self._refuse(f"{other.name} was given work, but in_service did not name it")
        done = math.fsum(self._present.values()) - math.fsum(before.values())
        if abs(done - work) > self._slack:
            self._refuse(f"the medium did {work} Hz s, but the jobs were given {done}")
        if share < 1.0:
            if set(self._in_service()) != served_before:
                self._refuse("in_service changed without join or leave")
            now = self._next_end()[0]
            if abs(now - (left - work)) > self._slack:
                self._refuse(f"next_end said {left} Hz s, and {now} after {work} of them; it must be {left - work}")

    def _look(self) -> None:
        """Ask for everything, and keep the answers."""
        rate_hz = self._ask("rate_hz", lambda: self.discipline.rate_hz(1e6))
        if not 0 < rate_hz < math.inf:
            self._refuse(f"rate_hz returned {rate_hz!r}; it must be a finite number above 0")
        served = sorted(job.name for job in self._in_service())
        following = None
        if self._present:
            left, job = self._next_end()
            following = left, job.name
        self.answers.append((rate_hz, served, following, tuple(self._served(job) for job in self._present)))

    def _in_service(self) -> list[_Job]:
        """Return the jobs in service, which must be some of those present."""
        served: list[Any] = list(self._ask("in_service", self.discipline.in_service))
        strangers = [job for job in served if job not in self._present]
        if strangers:
            self._refuse(f"in_service named {getattr(strangers[0], 'name', strangers[0])}, which is not present")
        if self._present and not served:
            self._refuse("in_service named no job, though some are present")
        return served

    def _next_end(self) -> tuple[float, _Job]:
        answer: Any = self._ask("next_end", self.discipline.next_end)
        if not (isinstance(answer, tuple) and len(answer) == 2 and answer[1] in self._present):
            self._refuse(f"next_end returned {answer!r}; it must be (work, job) with a job that is present")
        left, job = answer
        if not -self._slack <= left < math.inf:
            self._refuse(f"next_end returned {left!r} Hz s; it must be a finite number of at least 0")
        return max(0.0, left), job

    def _served(self, job: _Job) -> float:
        return float(self._ask("served", lambda: self.discipline.served(job)))

    def _unchanged(self, method: str) -> None:
        """Compare the work done for every job with what it was before a job joined or left."""
        for job, had in self._present.items():
            has = self._served(job)
            if not abs(has - had) <= self._slack:
                self._refuse(f"{method} changed the work done for {job.name} from {had} to {has} Hz s")

    def _ask(self, method: str, call: Callable[[], T]) -> T:
        try:
            return call()
        except Exception as error:
            raise ContractError(
                f"{self.name}.{method} failed with {type(error).__name__}: {error} ({self._where()})"
            ) from error

    def _refuse(self, why: str) -> NoReturn:
        raise ContractError(f"{self.name}: {why} ({self._where()})")

    def _where(self) -> str:
        return f"in the trial with {self.trial.name}, step {self._step}"


def _factory(discipline_or_factory: Discipline | Callable[[], Discipline]) -> Callable[[], Discipline]:
    """Return a callable that makes new disciplines, refusing what is none."""
    given = discipline_or_factory
    make: Callable[[], Any]
    if callable(given):
        make = given
        if given() is given():
            raise ContractError(f"{given!r} returned the same object twice; a factory must return a new one")
    else:
        prototype = given

        def make() -> Any:
            return copy.deepcopy(prototype)

    found = make()
    missing = [name for name in SHARINGS.methods if not callable(getattr(found, name, None))]
    if missing:
        raise ContractError(
            f"{type(found).__name__} has no method {' and no method '.join(missing)}; derive from Discipline"
        )
    return make
