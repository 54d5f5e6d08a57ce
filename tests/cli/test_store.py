"""The command ``fedsim store`` as a user types it."""

import sqlite3
import warnings

import numpy as np
import pytest
from typer.testing import CliRunner

from fedsim.cli import app, main
from fedsim.errors import FedsimError, StoreWarning
from fedsim.learning.store.choice import open_store
from fedsim.learning.store.disk import FILE

SAID = [("the disk is full", StoreWarning), ("other", UserWarning)]


@pytest.fixture
def folder(tmp_path):
    store = open_store(tmp_path / "store")
    for digest in "ab":
        store.put_arrays(digest, {"model": np.zeros(1000, dtype=np.float32)})
    store.put_records({"a": {"loss": 0.5}})
    return tmp_path / "store"


def fedsim(*arguments, answer=None):
    done = CliRunner().invoke(app, ["store", *map(str, arguments)], input=answer)
    if isinstance(done.exception, FedsimError):
        raise done.exception
    return done


def test_what_the_store_holds(folder, monkeypatch):
    lines = fedsim("--store", folder).stdout.splitlines()
    assert lines[0].split() == ["folder", str(folder)]
    assert lines[1].startswith("records     1, ")
    assert lines[2].startswith("models      2, 8.")
    assert lines[2].endswith("KiB of at most 5.0 GiB")
    assert all(line.endswith(", 0.0 hours ago") for line in lines[3:])
    monkeypatch.setenv("FEDSIM_STORE", str(folder))
    assert fedsim().stdout.splitlines()[2:] == lines[2:]


def test_trim(folder):
    assert fedsim("trim", "--store", folder, "--older-than", "1").stdout == "0 models removed, 0 B\n"
    assert fedsim("trim", "--store", folder, "--to", "5 kB").stdout.startswith("1 models removed, 4.")
    assert fedsim("--store", folder, "trim", "--to", "0 B").stdout.startswith("1 models removed, 4.")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [((), "--to SIZE or --older-than DAYS is missing"), (("--to", "5"), "--to: '5' is not allowed")],
)
def test_trim_says_what_it_needs(arguments, said, folder):
    with pytest.raises(FedsimError, match=said):
        fedsim("trim", "--store", folder, *arguments)


def test_check(folder):
    assert fedsim("check", "--store", folder).stdout == "1 records and 2 models are sound\n"
    with sqlite3.connect(folder / FILE) as connection:
        connection.execute("UPDATE model SET crc = 1 WHERE digest = 'a'")
    done = fedsim("check", "--store", folder)
    assert done.stdout.endswith("0 records and 1 models were damaged and are removed\n")
    assert done.exit_code == 1
    assert fedsim("check", "--store", folder).exit_code == 0


def test_clear_asks(folder):
    assert fedsim("clear", "--store", folder, answer="n\n").exit_code == 1
    assert open_store(folder).records(["a"])
    assert fedsim("clear", "--store", folder, answer="y\n").stdout.endswith("is empty\n")
    assert not open_store(folder).records(["a"])
    assert fedsim("clear", "--store", folder, "--yes").stdout == f"{folder} is empty\n"


@pytest.mark.parametrize("command", [(), ("trim", "--to", "1 GB"), ("check",), ("clear", "--yes")])
def test_no_store_is_made_by_looking(command, tmp_path):
    with pytest.raises(FedsimError, match="there is none in"):
        fedsim(*command, "--store", tmp_path / "typo")
    assert not (tmp_path / "typo").exists()
    with pytest.raises(FedsimError, match="FEDSIM_STORE names none; name a folder with --store"):
        fedsim(*command)


def test_warnings_of_the_store_are_printed_like_errors(monkeypatch, capsys):
    monkeypatch.setattr("fedsim.cli.app", lambda **_: [warnings.warn(text, kind, stacklevel=1) for text, kind in SAID])
    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        with pytest.raises(SystemExit, match="0"):
            main()
    first, second, *_ = capsys.readouterr().err.splitlines()
    assert first == "fedsim: the disk is full"
    assert second.endswith("UserWarning: other")
