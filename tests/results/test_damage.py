"""Files of a run folder with a bit turned: no value is read that was not written."""

import contextlib
import random

import pyarrow as pa
import pytest

from fedsim import load_model, read_run, run
from fedsim.errors import RunError
from fedsim.results import read_summary
from fedsim.results.tables import read_parquet
from tests.support.run_folders import stopped
from tests.support.short_runs import TIMING

SCENARIO = TIMING.replace({"learning": {"model": {"kind": "mlp", "hidden": [4]}}, "rounds.count": 6})


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Return a finished and an interrupted run."""
    base = tmp_path_factory.mktemp("damage")
    run(SCENARIO, base / "finished", store=False)
    stopped(SCENARIO, base / "interrupted", 4, store=False)
    return base


def content(folder):
    """Return everything that readers find in a folder."""
    found = {name: table.to_pydict() for name, table in read_run(folder).tables().items()}
    if folder.name == "finished":
        found["summary"] = read_summary(folder)
        found["model"] = {name: values.tolist() for name, values in load_model(folder).state_dict().items()}
    return found


@contextlib.contextmanager
def holding(file, content):
    """Give a file another content for a while."""
    before = file.read_bytes()
    file.write_bytes(content)
    try:
        yield
    finally:
        file.write_bytes(before)


def silent(file, read, number, seed):
    """Return how many of so many turned bits change what is read without an error."""
    draws, expected, changed = random.Random(seed), read(), 0  # noqa: S311
    for _ in range(number):
        bits = bytearray(file.read_bytes())
        bits[draws.randrange(len(bits))] ^= 1 << draws.randrange(8)
        with holding(file, bits), contextlib.suppress(RunError):
            changed += read() != expected
    return changed


FILES = [
    *(("finished", f"{name}.parquet") for name in ("participations", "rounds", "evaluations")),
    ("finished", "summary.json"),
    ("finished", "model.safetensors"),
    ("finished", "run.json"),
    *(("interrupted", f"{name}.arrows") for name in ("participations", "rounds", "evaluations")),
    ("interrupted", "run.json"),
]


@pytest.mark.parametrize("number", [4, pytest.param(150, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("status", "name"), FILES)
def test_turned_bits_change_no_value_in_silence(status, name, number, folders):
    folder = folders / status
    assert silent(folder / name, lambda: content(folder), number, name) == 0


def test_pages_of_parquet_have_checksums_of_their_own(folders):
    """For other programs, which do not read run.json: a bit turned in the data of a page is noticed."""
    file = folders / "finished" / "participations.parquet"
    place = pa.parquet.ParquetFile(file).metadata.row_group(0).column(0)
    bits = bytearray(file.read_bytes())
    # The last byte of the column's last page.
    bits[place.dictionary_page_offset + place.total_compressed_size - 1] ^= 4
    with pytest.raises(OSError, match="CRC"):
        read_parquet(bytes(bits))


def test_a_stream_with_a_turned_bit_is_not_gone_on_with(folders, tmp_path):
    stream = folders / "interrupted" / "rounds.arrows"
    bits = bytearray(stream.read_bytes())
    bits[-9] ^= 1
    with holding(stream, bits), pytest.raises(RunError, match=r"rounds\.arrows: is damaged: its checksum"):
        run(SCENARIO, folders / "interrupted", store=False)
