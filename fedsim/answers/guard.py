"""Calls of parts of the user's own: a failure becomes an error that names the part.

Nothing that a part raises is taken for an event of the simulation: neither SimPy's Interrupt, which is how a server
crashes, nor its StopSimulation, which ends a run, nor SystemExit. Errors of fedsim keep their text, and Ctrl-C ends the
run.
"""

import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType, TracebackType
from typing import Final, TypeVar

from fedsim.arrays import IntArray
from fedsim.code_digest import is_users, is_users_file
from fedsim.errors import FedsimError, PartError, tracebacks_wanted
from fedsim.inputs.plugins import with_package

T = TypeVar("T")
RAISED_ON_PURPOSE: Final = (FedsimError, KeyboardInterrupt)
"""What passes through a call of a part as it is."""
FAILURES: Final = (Exception, SystemExit)
"""What counts as a failure where a part's code is not called through its contract, as in a module's layers."""
_LONGEST: Final = 300
_LIBRARIES: Final = frozenset({"fedsim", "numpy", "torch", "simpy", "pydantic", *sys.stdlib_module_names})


def asked(part: str, member: str, call: Callable[..., T], *arguments: object, error: type[PartError] = PartError) -> T:
    """Return what a part's member returns."""
    try:
        return call(*arguments)
    except RAISED_ON_PURPOSE:
        raise
    except BaseException as failure:
        raise failed(part, member, failure, error) from failure


def failed(
    part: str,
    member: str,
    failure: BaseException,
    error: type[PartError] = PartError,
    clients: Sequence[int] | IntArray = (),
) -> PartError:
    """Return the error about a member that has failed; the failure becomes its cause."""
    text = in_a_line(str(failure))
    what = f"{part}.{member} failed with {type(failure).__name__}{f': {text}' if text else ''}"
    fault = error(what, f"where: {place_of(failure.__traceback__)}")
    fault.name_clients(clients)
    return fault


def in_a_line(text: str) -> str:
    r"""Return a text without breaks between its lines, and cut where it is long."""
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 3]}..."


@contextmanager
def attributing() -> Iterator[None]:
    """Raise what a part of the user's own raises in here as the error about this part."""
    try:
        yield
    except FedsimError:
        raise
    except Exception as failure:
        fault = attributed(failure)
        if fault is None:
            raise
        raise fault from failure


def place_of(trace: TracebackType | None) -> str:
    """Return file, line and function of the user's innermost call of a traceback, in words; any call if none is."""
    calls = list(traceback.walk_tb(trace))
    if not calls:
        return "unknown"
    outside = [call for call in calls if _package_of(call[0]) not in _LIBRARIES]
    own = [call for call in outside if _is_own(call[0])]
    frame, line = (own or outside or calls)[-1]
    return f"{Path(_file_of(frame)).name}, line {line}, in {frame.f_code.co_name}"


def _package_of(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", "")).partition(".")[0]


def _file_of(frame: FrameType) -> str:
    """Return the file of a call's code; of code that came from another process, the file of its module."""
    file = frame.f_code.co_filename
    return str(frame.f_globals.get("__file__") or file) if file.startswith("<") else file


def _is_own(frame: FrameType) -> bool:
    """Return whether the code of a call is in a file of the user's, or was typed in."""
    file = _file_of(frame)
    return _package_of(frame) == "__main__" if file.startswith("<") else is_users_file(file)


def attributed(failure: BaseException) -> PartError | None:
    """Return the error about the part of the user's own in whose code something was raised; None if there is none."""
    found = None
    for frame, _ in traceback.walk_tb(failure.__traceback__):
        # A method's object or class names the part, also where a library that it calls has failed.
        held = frame.f_locals
        for owner in (type(held.get("self")), held.get("cls")):
            if isinstance(owner, type) and (owner.__module__ == "__main__" or is_users(owner.__module__)):
                found = owner, frame.f_code.co_name
                break
    if found is None:
        return None
    owner, member = found
    return failed(place_of_class(owner), member, failure)


def place_of_class(owner: type) -> str:
    """Return module and name of a class, as scenarios name it, and the installed package that it is from."""
    return with_package(f"{owner.__module__}:{owner.__qualname__}", owner.__module__)


class ShortTraceback:
    """A context that cuts the traceback of an error of fedsim down to the calls around the context."""

    def __enter__(self) -> None:
        """Do nothing."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not isinstance(error, FedsimError) or tracebacks_wanted():
            return
        if not error.origin:
            error.origin = "".join(traceback.format_exception(error))
            error.failure = _failure(error)
        # Without a cause, and with what was being handled kept from print.
        error.__cause__ = None
        error.__traceback__ = None


def _failure(error: FedsimError) -> BaseException | None:
    """Return what led to an error; SimPy puts copies of the error itself between."""
    cause = error.__cause__
    while isinstance(cause, FedsimError) and cause.__cause__ is not None:
        cause = cause.__cause__
    return None if isinstance(cause, FedsimError) else cause
