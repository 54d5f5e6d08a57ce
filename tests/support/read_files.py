"""One file of each kind that fedsim reads, and the commands that read it."""

import pickle
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
from pyarrow import csv, parquet as pq

from fedsim import read_run
from fedsim.learning.data.images.idx import FILES
from tests.support.field_values import write_files

TIMING: Final = """
name = "read"
crowd = { clients = 6 }
learning = { kind = "none", model_bits = 1e6, samples_per_client = 5, flops_per_sample = 1e6 }
network = "pause-two-speed"
rounds = { count = 2, policy = { kind = "deadline", deadline_s = 50.0 } }
selector = { kind = "uniform", cohort = 3 }
results = { audit = true }
"""
LEARNING: Final = """
name = "read"
crowd = { clients = 4 }
network = "pause-two-speed"
devices = { compute = "zero" }
rounds = { count = 2, policy = { kind = "deadline", deadline_s = 50.0 } }
selector = { kind = "uniform", cohort = 2 }
[learning]
data = { kind = "digits", train_limit = 60 }
model = { kind = "mlp", hidden = [3] }
local = { max_batches = 1 }
"""
_GRAPH: Final = (
    "network={kind = 'graph', topology = {kind = 'two-tier', cells = 1, site_distance_m = 50.0, fronthaul = "
    "{capacity_bps = 1e7, delay_s = 0.0}, backhaul = {capacity_bps = 1e7, delay_s = 0.0}}, access = "
    "{kind = 'radio', delay_s = 0.0}, mobility = {kind = 'trace', path = 'one/walks.csv'}}"
)
SCENARIO_FILES: Final = {
    "one/places.csv": ("crowd.placement={kind = 'file', path = 'one/places.csv'}", "network=cell"),
    **{
        f"one/capacities.{ending}": (f"network={{kind = 'fedscale', path = 'one/capacities.{ending}'}}",)
        for ending in ("csv", "pkl", "parquet", "npz")
    },
    "one/graph.json": ("network={kind = 'graph', topology = {kind = 'file', path = 'one/graph.json'}}",),
    "one/walks.csv": (_GRAPH,),
    **{
        f"one/traces.{ending}": (f"devices.availability={{kind = 'traces', path = 'one/traces.{ending}'}}",)
        for ending in ("csv", "parquet", "npz", "pkl")
    },
}
"""Files that a scenario names -> what makes it read them."""


@dataclass(frozen=True)
class Read:
    """A file, or a pattern of files, with the commands that read it after each damage.

    A checksum tells every damage to a `sealed` file; of a `mended` one the work is done again. `folder` is restored.
    """

    path: str
    lines: tuple[tuple[str, ...], ...]
    sealed: bool = False
    mended: bool = False
    folder: str = ""


def write_read_files(folder: Path) -> None:
    write_files(folder)
    one = folder / "one"
    for name in ("capacities", "traces"):
        table = csv.read_csv(one / f"{name}.csv")
        pq.write_table(table, one / f"{name}.parquet", write_page_checksum=True)
        columns = {column: table[column].to_numpy() for column in table.column_names}
        np.savez_compressed(one / f"{name}.npz", **columns)
    numbers = {str(i): {"computation": 20.0 + i, "communication": 5000.0} for i in range(8)}
    (one / "capacities.pkl").write_bytes(pickle.dumps(numbers))
    spans = {str(i): {"active": [0, 30], "inactive": [20, 50], "finish_time": 100} for i in range(8)}
    (one / "traces.pkl").write_bytes(pickle.dumps(spans))
    (folder / "timing.toml").write_text(TIMING)
    (folder / "learning.toml").write_text(LEARNING)


def _named_by_a_scenario() -> Iterator[Read]:
    for path, sets in SCENARIO_FILES.items():
        more = tuple(word for text in sets for word in ("--set", text))
        yield Read(path, (("run", "timing.toml", *more, "--out", "new", "--no-store", "-q"),))
    own = ("--set", "learning.data={kind = 'idx-files', name = 'one', train_limit = 60}")
    for name in FILES:
        yield Read(f"one/raw/{name}", (("run", "learning.toml", *own, "--out", "new", "--no-store", "-q"),))
    of_users = own[1].replace("60", "60, users = true")
    by_user = ("--set", of_users, "--set", "learning.split={kind = 'natural'}")
    as_told = ("--set", "learning.split={kind = 'file', path = 'one/division.csv'}", "--set", "crowd.clients=6")
    as_told = (*as_told, "--set", "learning.data.train_limit=120")
    for path, sets in (("one/raw/train-users.csv", by_user), ("one/division.csv", as_told)):
        lines = ("run", "learning.toml", *sets, "--out", "new", "--no-store", "-q"), ("data", "learning.toml", *sets)
        yield Read(path, lines)


def _written_by_runs() -> Iterator[Read]:
    again = {name: ("run", "learning.toml", "--out", name, "--no-store", "-q") for name in ("finished", "interrupted")}
    for ending in ("run.json", "summary.json", "scenario.toml", "*.parquet", "model.safetensors"):
        lines = ("report", "finished"), ("plot", "finished", "--out", "new.png"), again["finished"]
        yield Read(f"finished/{ending}", lines, sealed=True, folder="finished")
    for ending in ("run.json", "*.arrows"):
        yield Read(
            f"interrupted/{ending}", (("report", "interrupted"), again["interrupted"]), True, folder="interrupted"
        )
    lines = (
        ("run", "learning.toml", "--out", "new", "--store", "store", "-q"),
        ("store", "--store", "store"),
        ("store", "check", "--store", "store"),
    )
    yield Read("store/results-1.sqlite", lines, mended=True, folder="store")


FILES_READ: Final = (*_named_by_a_scenario(), *_written_by_runs())
"""Every kind of file, in the folder that `write_read_files` fills: runs are ``finished`` and ``interrupted``."""

Restore = Callable[[], None]


def kept(folder: Path) -> Restore:
    """Return what puts a folder back as it is now; it touches only what differs."""
    folders = {path for path in folder.rglob("*") if path.is_dir()}
    contents = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}

    def restore() -> None:
        for path in sorted(folder.rglob("*"), reverse=True):  # what is in a folder before the folder
            if path.is_dir() and path not in folders:
                path.rmdir()
            elif not path.is_dir() and path not in contents:
                path.unlink()
        for path in folders:
            path.mkdir(parents=True, exist_ok=True)
        for path, content in contents.items():
            if not path.exists() or path.read_bytes() != content:
                path.write_bytes(content)

    return restore


def numbers_of(folder: Path) -> dict[str, list[dict[str, object]]]:
    return {name: pa.Table.to_pylist(table) for name, table in read_run(folder).tables().items()}
