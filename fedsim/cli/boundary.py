"""The boundary of the command line: whatever ends a command becomes a paragraph and an exit code (see the page)."""

import errno
import io
import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Final

from fedsim.errors import TRACEBACKS, FedsimError, tracebacks_wanted

_REFUSED: Final = 2
_FAULT: Final = 1
_INTERRUPTED: Final = 130
_NO_MEMORY: Final = "can't allocate memory"
"""What torch says of the memory of a CPU."""
_NO_ROOM: Final = frozenset({errno.ENOSPC, errno.EIO, errno.EDQUOT, errno.EBADF})


def guarded(command: Callable[[], object]) -> int:
    """Run a command and return the exit code of its process; nothing that it raises goes further."""
    for stream in (sys.stdout, sys.stderr):
        # Where a terminal lacks a character, its number is printed instead.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        try:
            command()
        except SystemExit as end:
            sys.stdout.flush()
            return _code_of(end)
        sys.stdout.flush()
    except BaseException as error:
        return _told(error)
    return 0


def show_tracebacks() -> None:
    os.environ[TRACEBACKS] = "1"


def _told(error: BaseException) -> int:
    """Say on standard error what has ended a command, and return the exit code."""
    if isinstance(error, BrokenPipeError):
        _close_output()
        return 0
    if tracebacks_wanted():
        _say("".join(traceback.format_exception(error)))
    if isinstance(error, KeyboardInterrupt):
        _say("fedsim: interrupted\n")
        return _INTERRUPTED
    if isinstance(error, Exception) and not isinstance(error, FedsimError | MemoryError | OSError):
        from fedsim.answers import attributed

        error = attributed(error) or error
    if isinstance(error, FedsimError):
        _say(f"fedsim: {error}\n")
        return _REFUSED
    if isinstance(error, MemoryError) or (isinstance(error, RuntimeError) and _NO_MEMORY in str(error)):
        _say(
            "fedsim: there is not enough memory for this command; allowed: fewer clients or cells, or a smaller model "
            f"or file ({str(error) or 'no size is known'})\n"
        )
        return _REFUSED
    if isinstance(error, OSError) and error.errno in _NO_ROOM and error.filename is None:
        _close_output()
        _say(f"fedsim: the output cannot be written: {error.strerror}; allowed: a place with room for it\n")
        return _REFUSED
    _say(_report(error))
    return _FAULT


def _report(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    at = f" in {Path(frames[-1].filename).name}, line {frames[-1].lineno}" if frames else ""
    reason = " ".join(str(error).split())[:300]
    return (
        f"fedsim: this should not have happened: {type(error).__name__}{': ' if reason else ''}{reason}{at}. It is "
        "a fault of fedsim, or of a part of your own. Please report it to the developers of fedsim, with the scenario, "
        f"the command, what the command prints with {TRACEBACKS}=1, and what 'fedsim --version' prints.\n"
    )


def _code_of(end: SystemExit) -> int:
    if end.code is None:
        return 0
    if isinstance(end.code, int):
        return end.code
    _say(f"{end.code}\n")
    return _FAULT


def _say(text: str) -> None:
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except (OSError, ValueError):
        return  # there is no place left to say it; the exit code does


def _close_output() -> None:
    """Send what is left of the output nowhere, so that Python does not fail once more as it ends."""
    try:
        number = sys.stdout.fileno()
    except (OSError, ValueError):
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, number)
    os.close(nowhere)
