"""Checks of what effects return: steps on the clock with a value in the end, members, and columns."""

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from types import GeneratorType
from typing import Any

import numpy as np
from numpy.typing import NDArray
from simpy import Event

from fedsim.answers import AnswerError, Given, InstanceOf, Kind, Numbers, failed, in_words, same_shape
from fedsim.arrays import IntArray
from fedsim.errors import FedsimError, PartError
from fedsim.selectors import Cohort

Running = Generator[Event, Any, Any]


@dataclass(frozen=True)
class Steps:
    """A generator that yields events of the clock, and whose value is of a kind."""

    of: Kind

    def __call__(self, answer: object, given: Given) -> Running:
        """Return steps that are checked, and whose failure names the part."""
        steps: GeneratorType[Event, Any, Any] = InstanceOf(GeneratorType)(answer, given)
        part, _, member = steps.gi_code.co_qualname.rpartition(".")
        return stepped(steps, part.rpartition(".")[2], member, lambda value: self.of(value, given))


def stepped(steps: Running, part: str, member: str, check: Callable[[object], Any]) -> Running:
    """Run the steps of a part; what the server throws into them passes through, what they raise themselves does not."""
    value: Any = None
    thrown: BaseException | None = None
    while True:
        try:
            event = steps.send(value) if thrown is None else steps.throw(thrown)
        except StopIteration as stop:
            try:
                return check(stop.value)
            except AnswerError as lie:
                raise PartError(f"{part}.{member} returned {lie.found}", f"allowed: {lie.allowed}") from None
        except (FedsimError, KeyboardInterrupt):
            raise
        except BaseException as failure:
            if failure is thrown:
                raise
            raise failed(part, member, failure) from failure
        if type(event) is not Event and not issubclass(type(event), Event):
            raise PartError(f"{part}.{member} yielded {in_words(event)}", "allowed: an event of the clock")
        value, thrown = None, None
        try:
            value = yield event
        except BaseException as error:
            thrown = error


@dataclass(frozen=True)
class PartOfCohort:
    """A cohort of clients of the one that was given."""

    def __call__(self, answer: object, given: Given) -> Cohort:
        cohort: Cohort = InstanceOf(Cohort)(answer, given)
        if not np.isin(cohort.client, given["cohort"].client).all():
            raise AnswerError(f"a cohort of {in_words(cohort.client)}", "clients of the cohort that was given")
        return cohort


@dataclass(frozen=True)
class SomeMembers:
    """Positions of the members that were given."""

    def __call__(self, answer: object, given: Given) -> IntArray:
        places = np.asarray(answer)
        if places.ndim != 1 or places.dtype.kind not in "iu" or not np.isin(places, given["members"]).all():
            raise AnswerError(in_words(answer), "an array of positions among those of members")
        return np.unique(places).astype(np.int64)


class MemberColumns:
    """Numbers of members by the names of columns."""

    def __call__(self, answer: object, given: Given) -> dict[str, NDArray[Any]]:
        found: Mapping[str, Any] = InstanceOf(Mapping)(answer, given)
        number = Numbers(same_shape("members"), infinite=True, nan=True)
        try:
            each = {name: np.broadcast_to(values, given["members"].shape) for name, values in found.items()}
        except ValueError:
            raise AnswerError(in_words(answer), "one number for each member, or one for all, by name") from None
        return {name: number(np.asarray(values, dtype=np.float64), given) for name, values in each.items()}
