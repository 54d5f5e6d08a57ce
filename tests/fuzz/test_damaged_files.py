"""Damage to each file that fedsim reads: no traceback, and no wrong value where there is a checksum.

What a user gives is refused with its path, or read where it still is a file of its kind. What a run wrote has
checksums, so that every answer is the one before the damage. The store loses what is damaged; results
stay.
"""

import os
import shutil
from pathlib import Path

import pytest
from matplotlib.figure import Figure

from fedsim import Scenario, run
from tests.support.one_command import call, faults
from tests.support.random_texts import damaged
from tests.support.read_files import FILES_READ, Read, kept, numbers_of, write_read_files
from tests.support.seeded_draws import Seeded, distinct

MANY = int(os.environ.get("FEDSIM_DAMAGES", "5"))
"""Damages to each file in the slow tier."""


@pytest.fixture(scope="module")
def files(place):
    """Return the reports and tables of a finished run, and what restores each folder."""
    write_read_files(place)
    assert call(["run", "learning.toml", "--out", "finished", "--store", "store", "-q"]).code == 0

    def stop(progress):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(Scenario.load("learning.toml"), "interrupted", store=False, on_round=stop)
    said = call(["report", "finished"]).out
    assert said
    restore = {name: kept(place / name) for name in ("finished", "interrupted", "store")}
    return said, numbers_of(Path("finished")), restore


def answers(read: Read, path: Path, content: bytes, files) -> None:
    said, numbers, restore = files
    before = path.read_bytes()
    for line in read.lines:
        path.write_bytes(content)
        try:
            ended = call(line)
            wrong = faults(ended, Path("new") if "new" in line else None)
            if line[:2] == ("store", "check") and "damaged and are removed" in ended.out:
                wrong = []  # exit code 1 is how it tells
            if ended.code == 2 and not read.mended and path.name not in "".join(ended.errors.split("\n")):
                wrong.append(f"the file is not named: {ended.errors}")
            if ended.code == 0 and line == ("report", "finished") and ended.out != said:
                wrong.append("another report")
            if ended.code == 0 and line[0] == "run" and (read.sealed or read.mended):
                out = Path(line[line.index("--out") + 1])
                wrong += ["other tables"] if numbers_of(out) != numbers else []
            assert not wrong
        finally:
            shutil.rmtree("new", ignore_errors=True)
            Path("new.png").unlink(missing_ok=True)
            if read.folder:
                restore[read.folder]()
            else:
                path.write_bytes(before)


def damage(read: Read, files, examples: int, first: int = 0) -> None:
    for path in sorted(Path().glob(read.path)):
        content = path.read_bytes()

        def changed(number: int, path: Path = path, content: bytes = content) -> bytes:
            return damaged(Seeded(f"{path.suffix} {number}"), content)

        answers(read, path, content, files)
        for number, other in distinct(changed, examples, first):
            try:
                answers(read, path, other, files)
            except AssertionError as error:
                error.add_note(f"{path}, damage {number}")
                raise


pytestmark = pytest.mark.filterwarnings("default::fedsim.errors.StoreWarning")  # as on the command line
# One file of each reader in the default tier.
ONE_EACH = {
    *("one/places.csv", "one/capacities.pkl", "one/capacities.parquet", "one/graph.json", "one/traces.npz"),
    *("one/division.csv", "finished/run.json", "finished/*.parquet", "interrupted/*.arrows", "store/results-1.sqlite"),
}


@pytest.mark.parametrize("read", [one for one in FILES_READ if one.path in ONE_EACH], ids=lambda read: read.path)
def test_damaged_files(read, files):
    damage(read, files, 1)


@pytest.mark.slow
@pytest.mark.parametrize("read", FILES_READ, ids=lambda read: read.path)
def test_files_damaged_many_times(read, files, monkeypatch):
    """Figures are made of lines and words, and not of dots, which the tests of the default tier also do."""
    monkeypatch.setattr(Figure, "savefig", lambda _, out, **__: Path(out).touch())
    damage(read, files, MANY, 1000)
