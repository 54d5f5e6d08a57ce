"""The division of a scenario's data on the command line."""

import csv
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fedsim.cli import app

SCENARIO = """
name = "divided"
crowd = { clients = 6 }
learning = { split = { kind = "shards" }, data = { kind = "digits", train_limit = 240 } }
network = "pause-two-speed"
rounds = { count = 2 }
selector = { kind = "uniform", cohort = 2 }
"""


def told(*line: str) -> str:
    ran = CliRunner().invoke(app, ["data", *line])
    assert ran.exit_code == 0, ran.output
    return ran.output


@pytest.fixture
def _divided(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("divided.toml").write_text(SCENARIO)


@pytest.mark.usefixtures("_divided")
def test_a_division_is_told_drawn_and_written() -> None:
    text = told("divided.toml", "--figure", "a/split.png", "--table", "a/split.csv")
    for words in (
        "divided: shards",
        "6, 0 of them without samples",
        "240 of 240",
        "40 to 40, median 40",
        "a/split.png",
    ):
        assert words in text
    rows = list(csv.DictReader(Path("a/split.csv").read_text().splitlines()))
    assert len(rows) == 60
    assert sum(int(row["samples"]) for row in rows) == 240
    assert Path("a/split.png").read_bytes()[:4] == b"\x89PNG"
    assert "divided: zipf" in told("divided.toml", "--set", "learning.split={kind='zipf'}")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (["digits", "--figure", "x.png"], "--set, --figure and --table need a scenario"),
        (["divided.toml", "--download"], "--download needs the name of a data set"),
        (["divided.toml", "--set", "learning='none'", "--set", "devices.compute='zero'"], "has no data to divide"),
        (["divided.toml", "--figure", "x.doc"], "a figure needs a name that ends in"),
        (["divided.toml", "--table", "divided.toml/x.csv"], "divided.toml: cannot be made: "),
        (
            ["divided.toml", "--table", "x.parquet"],
            "--table: x.parquet is not allowed; allowed: a name that ends in .csv",
        ),
    ],
)
@pytest.mark.usefixtures("_divided")
def test_what_cannot_be_told_is_refused(line: list[str], words: str) -> None:
    ran = CliRunner().invoke(app, ["data", *line])
    assert words in str(ran.exception)


def test_hints_name_the_publisher_and_repeat_the_data_folder(tmp_path: Path) -> None:
    for kind, page in (("mnist", "yann.lecun.com"), ("cifar-100", "www.cs.toronto.edu/~kriz/cifar.html")):
        text = told(kind, "--data-dir", str(tmp_path))
        assert f"{kind}: fedsim data {kind} --download --data-dir {tmp_path}, or by hand from {page}" in text
    assert "train-images-idx3-ubyte.gz" in told("fashion-mnist")
    assert "fedsim data fashion-mnist --download, or" in told("fashion-mnist")


def test_files_of_ones_own_and_vectors_are_told(tmp_path: Path) -> None:
    for name in ("train-images-idx3", "train-labels-idx1", "t10k-images-idx3", "t10k-labels-idx1"):
        for folder in ("own", "half"):
            if folder == "own" or name.startswith("train"):
                (tmp_path / folder / "raw").mkdir(parents=True, exist_ok=True)
                (tmp_path / folder / "raw" / f"{name}-ubyte").touch()
    assert "idx-files: a set of your own" in told("idx-files", "--data-dir", str(tmp_path))
    assert told("idx-files", "--data-dir", str(tmp_path)).strip().endswith("found: name = 'own'")
    (tmp_path / "glove.6B.50d.txt.gz").touch()
    assert "glove = 'glove.6B.50d.txt.gz'" in told("--data-dir", str(tmp_path))
