"""Random changes to the text of a scenario, and random command lines: what was asked for, or exit code 2."""

import shutil
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from tests.support.hypothesis_draws import made_by
from tests.support.one_command import call, faults
from tests.support.random_texts import random_line, random_text
from tests.support.read_files import TIMING

FEW = settings(
    max_examples=150,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)
MANY = settings(FEW, max_examples=5000, derandomize=False)
texts, lines = made_by(random_text, TIMING), made_by(random_line)


@pytest.fixture(autouse=True, scope="module")
def run_folder(place):
    Path("case.toml").write_text(TIMING)
    assert call(["run", "case.toml", "--out", "run", "-q", "--no-store"]).code == 0


def check_text(content):
    Path("changed.toml").write_bytes(content)
    try:
        assert not faults(call(["run", "changed.toml", "--out", "new", "-q", "--no-store"]), Path("new"))
    finally:
        shutil.rmtree("new", ignore_errors=True)


def check_line(line):
    if "--download" in line:  # the network is no part of this
        return
    try:
        assert not faults(call(line))
    finally:
        for path in Path().iterdir():
            if path.name not in ("case.toml", "run"):
                shutil.rmtree(path) if path.is_dir() else path.unlink()


@given(texts)
@FEW
def test_changed_texts(content):
    check_text(content)


@given(lines)
@FEW
def test_command_lines(line):
    check_line(line)


@pytest.mark.slow
@given(texts)
@MANY
def test_many_changed_texts(content):
    check_text(content)


@pytest.mark.slow
@given(lines)
@MANY
def test_many_command_lines(line):
    check_line(line)
