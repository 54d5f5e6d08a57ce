"""The examination of a part: questions with read-only arrays, and faults named with the part and the place."""

import copy
import ctypes
import random
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.random import MT19937, mtrand
from numpy.typing import DTypeLike, NDArray

from fedsim.answers import AnswerError, Contract
from fedsim.errors import ContractError, FedsimError, PartError
from fedsim.rounds import Run
from fedsim.run_setup import other_build

T = TypeVar("T")
Answer = TypeVar("Answer")


class Examination:
    """Questions to one part; every fault becomes an error that names the part's class and the place."""

    error: ClassVar[type[FedsimError]] = ContractError
    read_only: ClassVar[str] = "the arrays given must not be changed"

    def __init__(self, part: object, place: str = "") -> None:
        self.name, self.place = type(part).__name__, place
        if wrong := other_build(part):
            raise self.error(f"{self.name}: {wrong}")

    def law(self, holds: bool | np.bool_, fault: str) -> None:
        """Refuse the part unless a law holds; ``fault`` begins with the member that breaks it."""
        if not holds:
            raise self.fault(fault)

    def same(self, found: Any, wanted: Any, fault: str) -> None:
        """Refuse the part if two arrays of one shape differ in a bit."""
        if not np.array_equal(found, wanted):
            i = int(np.flatnonzero(found != wanted)[0])
            raise self.fault(f"{fault}: {found[i]} and {wanted[i]} for one client")

    def derives(self, part: object, base: type, member: str, *flags: str) -> None:
        """Refuse a part that does not derive from a class, or has other flags than True and False."""
        self.law(isinstance(part, base), f"{member}: it does not derive from {base.__module__}.{base.__name__}")
        for name in flags:
            value = getattr(part, name)
            self.law(isinstance(value, bool), f"{name}: {value!r} is not allowed; it must be True or False")

    def array(
        self,
        member: str,
        answer: object,
        shape: tuple[int, ...],
        dtype: DTypeLike = np.float64,
        *,
        least: float | None = 0.0,
        infinite: bool = False,
    ) -> NDArray[Any]:
        """Return an answer that is an array of a type and shape, with finite numbers from a least one on."""
        if not isinstance(answer, np.ndarray) or answer.dtype != dtype or answer.shape != shape:
            wanted = f"{np.dtype(dtype)} of shape {shape} is needed"
            raise self.fault(f"{member} returned {described(answer)}; {wanted}")
        if least is not None:
            wrong = answer[~((answer >= least) & (infinite | np.isfinite(answer)))]
            needed = f"{'' if infinite else 'finite '}numbers{'' if least == -np.inf else f' of at least {least:g}'}"
            self.law(not wrong.size, f"{member} returned {wrong[:1].tolist()}; {needed} are needed")
        return answer

    def kept(self, contract: Contract, member: str, answer: object, **given: object) -> Any:
        """Return an answer of the kind that a contract declares."""
        try:
            return contract.members[member](answer, given)
        except AnswerError as lie:
            raise self.fault(f"{member} returned {lie.found}; allowed: {lie.allowed}") from None

    def ask(self, member: str, call: Callable[..., T], *arguments: object) -> T:
        """Return the answer to a question with read-only arguments; a failure or a global draw is a fault."""
        before = _global_random_state()
        try:
            answer = call(*map(locked, arguments))
        except FedsimError as error:
            if isinstance(error, PartError) and isinstance(error.__cause__, Exception):
                raise self.failure(member, error.__cause__) from error.__cause__
            text = error.in_a_line() if isinstance(error, PartError) else str(error)
            raise self.error(f"{text}{self._at()}") from error
        except Exception as error:
            raise self.failure(member, error) from error
        if _global_random_state() != before:
            raise self.fault(f"{member} drew from a global random generator; draws come from what it is given")
        return answer

    def steady(self, member: str, part: T, call: Callable[[T], Answer]) -> Answer:
        """Return an answer that a part gives again, as does a copy of it, and that it does not change later."""
        found = call(part)
        kept = copy.deepcopy(found)
        self.law(alike(call(part), kept), f"{member}: the answer differs when it is repeated")
        self.law(alike(call(copy.deepcopy(part)), kept), f"{member}: the answer differs in a copy")
        self.law(alike(found, kept), f"{member}: the answer was changed after it had been returned")
        return kept

    def failure(self, member: str, error: Exception) -> FedsimError:
        hint = f"; {self.read_only}" if "read-only" in str(error) else ""
        return self.fault(f"{member} failed with {type(error).__name__}: {error}{hint}")

    def fault(self, what: str) -> FedsimError:
        """Return the error about a fault, which begins with the member that has it."""
        return self.error(f"{self.name}.{what}{self._at()}")

    def _at(self) -> str:
        return f" ({self.place})" if self.place else ""


def at_least_two(**sizes: int) -> None:
    """Refuse trials too small to check anything, with a ValueError."""
    if min(sizes.values()) < 2:
        given = " and ".join(map(repr, sizes.values()))
        raise ValueError(f"{' and '.join(sizes)}: {given} is not allowed; it must be at least 2")


def described(answer: object) -> str:
    """Return type and shape of an answer, for messages."""
    return f"{answer.dtype} of shape {answer.shape}" if isinstance(answer, np.ndarray) else type(answer).__name__


def maker(given: T | Callable[[], T]) -> Callable[[], T]:
    """Return a callable that makes new parts: the one given, or deep copies of the part given."""
    if callable(given):
        return given
    prototype = copy.deepcopy(given)
    return lambda: copy.deepcopy(prototype)


def locked(record: Any) -> Any:
    """Return a record of arrays that cannot be written, even after a change of their flags."""
    if isinstance(record, np.ndarray):
        # NumPy's permutation refuses an empty read-only array.
        if not record.size:
            return record
        owner = record.copy()
        owner.flags.writeable = False
        return owner.view()
    if isinstance(record, Mapping):
        return {name: locked(value) for name, value in record.items()}
    if is_dataclass(record) and not isinstance(record, type | Run):
        return replace(record, **{field.name: locked(getattr(record, field.name)) for field in fields(record)})
    return record


def alike(one: Any, other: Any) -> bool:
    """Return whether two records have the same values, arrays bit by bit."""
    if is_dataclass(one):
        one, other = vars(one), vars(other)
    if isinstance(one, Mapping):
        return one.keys() == other.keys() and all(alike(value, other[name]) for name, value in one.items())
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(alike, one, other))
    return np.array_equal(one, other, equal_nan=np.asarray(one).dtype.kind == "f")


def _global_random_state() -> tuple[object, object]:
    """Return the states of the global random generators, to find out whether they were used."""
    of_numpy = mtrand.get_bit_generator()
    if isinstance(of_numpy, MT19937):  # 625 numbers of 4 bytes; `state` copies each by itself
        return random.getstate(), ctypes.string_at(of_numpy.ctypes.state_address, 2500)
    return random.getstate(), repr(of_numpy.state)
