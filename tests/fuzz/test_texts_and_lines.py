"""Random changes to the text of a scenario, and random command lines: what was asked for, or exit code 2."""

import shutil
from pathlib import Path

import pytest

from tests.support.one_command import call, faults
from tests.support.random_texts import random_line, random_text
from tests.support.read_files import TIMING
from tests.support.seeded_draws import Seeded, distinct

each_tier = pytest.mark.parametrize(
    ("cases", "first"), [(60, 0), pytest.param(400, 1_000_000, marks=pytest.mark.slow)], ids=["few", "many"]
)


@pytest.fixture(autouse=True, scope="module")
def run_folder(place):
    Path("case.toml").write_text(TIMING)
    assert call(["run", "case.toml", "--out", "run", "-q", "--no-store"]).code == 0


@each_tier
def test_changed_texts(cases, first):
    for number, content in distinct(lambda seed: random_text(Seeded(seed), TIMING), cases, first):
        Path("changed.toml").write_bytes(content)
        try:
            found = faults(call(["run", "changed.toml", "--out", "new", "-q", "--no-store"]), Path("new"))
            assert not found, f"case {number}: {content!r}"
        finally:
            shutil.rmtree("new", ignore_errors=True)


@each_tier
def test_command_lines(cases, first):
    for number, line in distinct(lambda seed: random_line(Seeded(seed)), cases, first):
        if "--download" in line:  # the network is no part of this
            continue
        try:
            found = faults(call(line))
            assert not found, f"case {number}: {line}"
        finally:
            for path in Path().iterdir():
                if path.name not in ("case.toml", "run"):
                    shutil.rmtree(path) if path.is_dir() else path.unlink()
