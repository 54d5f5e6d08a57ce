"""Errors of fedsim reach the caller's code with a short traceback, since their text says what is wrong."""

import traceback
from types import TracebackType

from fedsim.errors import FedsimError, tracebacks_wanted


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
