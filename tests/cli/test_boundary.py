"""Whatever ends a command becomes a paragraph and an exit code."""

import errno

import pytest

from fedsim.cli.boundary import guarded
from fedsim.errors import TRACEBACKS, DataError
from tests.support.one_command import call


def ending(error):
    def command():
        raise error

    return command


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (DataError("a: is wrong"), 2, "fedsim: a: is wrong\n"),
        (
            ZeroDivisionError("by\nzero"),
            1,
            "this should not have happened: ZeroDivisionError: by zero in test_boundary.py",
        ),
        (RecursionError(), 1, "RecursionError in test_boundary.py"),
        (BaseException("odd"), 1, "Please report it to the developers"),
        (MemoryError("3 TiB"), 2, "not enough memory for this command; allowed: fewer clients"),
        (RuntimeError("alloc_cpu.cpp:127: can't allocate memory"), 2, "not enough memory for this command"),
        (KeyboardInterrupt(), 130, "fedsim: interrupted\n"),
        (OSError(errno.ENOSPC, "No space left"), 2, "the output cannot be written: No space left"),
        (OSError(errno.ENOSPC, "No space left", "file"), 1, "OSError"),
        (BrokenPipeError(), 0, ""),
        (SystemExit(3), 3, ""),
        (SystemExit(), 0, ""),
        (SystemExit("a word"), 1, "a word\n"),
    ],
)
def test_each_end_has_its_words_and_code(error, code, words, capsys, monkeypatch):
    monkeypatch.delenv(TRACEBACKS, raising=False)
    assert guarded(ending(error)) == code
    told = capsys.readouterr().err
    assert words in told
    assert "Traceback" not in told
    assert bool(told) == bool(words)


def test_tracebacks_are_printed_on_request(capsys, monkeypatch):
    monkeypatch.setenv(TRACEBACKS, "1")
    assert guarded(ending(ZeroDivisionError())) == 1
    told = capsys.readouterr().err
    assert told.startswith("Traceback")
    assert "in command" in told


def test_the_option_prints_tracebacks(monkeypatch, tmp_path):
    monkeypatch.setenv(TRACEBACKS, "0")
    told = call(["--traceback", "check", str(tmp_path / "none.toml")]).errors
    assert told.startswith("Traceback")
    assert told.rstrip().endswith("a scenario is a TOML file")


def test_a_command_that_ends_well(capsys):
    assert guarded(lambda: print("done", end="")) == 0  # noqa: T201
    assert capsys.readouterr() == ("done", "")
