"""Hashes of the tables of many small scenarios: what a change of the code that changes no result must leave as it is.

    python tests/golden/freeze.py write              write the hashes of all scenarios
    python tests/golden/freeze.py check              compare with what is written; exit 1 at a difference
    python tests/golden/freeze.py check --every 20   compare every twentieth scenario by id
    python tests/golden/freeze.py check --only edges/

Scenarios are plain tables, as in a TOML file, and only the public names of fedsim are used. Hashes are exact to the
last bit, and hold on one kind of hardware with one release of the libraries; the column ``rounded`` is of the
same values with 9 significant digits.
"""

import argparse
import contextlib
import csv
import hashlib
import json
import os
import pickle
import struct
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import networkx as nx
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tests.golden.scenarios import Tables, graph_nodes, scenarios
from tests.support.data_files import idx

HASHES = Path(__file__).parent / "hashes.csv"
TABLES = ("rounds", "participations", "evaluations", "edge_rounds", "edge_participations", "probes", "accounts")
# Columns that are hashed: further ones change nothing here, a missing one is an error.
_ROUND = (
    "round start_s end_s duration_s candidates selected delivered late dropped stale_used model_version "
    "largest_leakage ended_by"
)
FROZEN = {
    "rounds": _ROUND,
    "participations": (
        "round edge client draws weight work start_s downlink_s compute_s uplink_s queue_s end_s downlink_bits "
        "uplink_bits outcome cut_in fate start_version served_round staleness epsilon energy_j"
    ),
    "evaluations": "round time_s model_version accuracy loss",
    "edge_rounds": f"edge {_ROUND}",
    "edge_participations": (
        "round edge edge_rounds start_s downlink_s uplink_s end_s downlink_bits uplink_bits start_version staleness "
        "weight"
    ),
    "probes": (
        "round edge client start_s downlink_s compute_s uplink_s queue_s end_s downlink_bits uplink_bits outcome "
        "cut_in energy_j"
    ),
    "accounts": "client idle_s downlink_s compute_s queue_s uplink_s cut_off_s",
}
VIEWS = ("by_fate", "critical_path", "cloud_path")
COLUMNS = ("scenario", "outcome", *TABLES, "views", "rounded")
RAN = "ran"
SMALLEST = 12  # decimal places beyond which the rounded values have nothing


# Files that scenarios read


def write_inputs(folder: Path) -> None:
    """Write placements, traces, topologies and small sets of images, under the names that scenarios use."""
    places = [f"{7.0 * i - 40.0},{35.0 - 5.0 * i}" for i in range(12)]
    (folder / "places.csv").write_text("\n".join(["x_m,y_m", *places, ""]))
    device = np.array([0, 0, 1, 2, 2, 3, 4, 5])
    start_s = np.array([0.0, 12.0, 3.0, 0.0, 20.0, 1.0, 0.0, 6.5])
    end_s = np.array([8.0, 25.0, 14.0, 5.5, 29.0, 30.0, 30.0, 18.25])
    rows = [f"d{one},{start},{end}" for one, start, end in zip(device, start_s, end_s, strict=True)]
    (folder / "intervals.csv").write_text("\n".join(["device,start_s,end_s", *rows, ""]))
    columns = {"device": device, "start_s": start_s, "end_s": end_s, "period_s": np.full(device.size, 30.0)}
    pq.write_table(pa.table(columns), folder / "intervals.parquet")
    offset = np.concatenate([[0], np.cumsum(np.bincount(device))])
    np.savez(folder / "intervals.npz", offset=offset, start_s=start_s, end_s=end_s, period_s=np.full(6, 30.0))
    behaviour = {
        one: {
            "active": [float(start) for start in start_s[device == one]],
            "inactive": [float(end) for end in end_s[device == one] if end < 30],
            "finish_time": 30.0,
        }
        for one in range(6)
    }
    (folder / "behaviour.pkl").write_bytes(pickle.dumps(behaviour, protocol=2))
    speed, kbps = [21.0, 29.0, 44.0, 82.0, 149.0, 153.0], [900.0, 450.0, 1500.0, 250.0, 6000.0, 700.0]
    rows = [f"{one},{other}" for one, other in zip(speed, kbps, strict=True)]
    (folder / "capacities.csv").write_text("\n".join(["computation,communication", *rows, ""]))
    np.savez(folder / "capacities.npz", computation=np.array(speed), communication=np.array(kbps))
    capacities = {
        number: {"computation": one, "communication": other}
        for number, (one, other) in enumerate(zip(speed, kbps, strict=True))
    }
    (folder / "capacities.pkl").write_bytes(pickle.dumps(capacities, protocol=2))
    moves = ["0,0.0,-50,0", "0,5.0,50,10", "1,0.5,10,10", "1,2.5,-60,-20", "3,0.0,0,60", "3,8.0,0,-60"]
    (folder / "moves.csv").write_text("\n".join(["client,time_s,x_m,y_m", *moves, ""]))
    _write_topologies(folder)
    for name, seed in (("MNIST", 1), ("FashionMNIST", 2)):
        _write_images(folder / name / "raw", np.random.default_rng(seed))


def _write_topologies(folder: Path) -> None:
    nodes, links = graph_nodes(0)
    table = {"directed": False, "multigraph": False, "nodes": nodes, "edges": links}
    (folder / "topology.json").write_text(json.dumps(table))
    nx.write_graphml(nx.node_link_graph(table, edges="edges"), folder / "topology.graphml")


def _write_images(folder: Path, luck: np.random.Generator) -> None:
    folder.mkdir(parents=True)
    for part, count in (("train", 80), ("t10k", 40)):
        labels = np.arange(count, dtype=np.uint8) % 10
        images = luck.integers(0, 256, (count, 28, 28)) // 2 + 12 * labels[:, None, None]
        (folder / f"{part}-images-idx3-ubyte").write_bytes(idx(images.astype(np.uint8)))
        (folder / f"{part}-labels-idx1-ubyte").write_bytes(idx(labels))


# Hashes


def plain(column: pa.ChunkedArray) -> pa.Array:
    """Return a column in one piece, labels as text."""
    array = pa.chunked_array(column.chunks, column.type).combine_chunks()
    if isinstance(array, pa.ChunkedArray):
        array = pa.concat_arrays(array.chunks) if array.num_chunks else pa.array([], column.type)
    return array.cast(array.type.value_type) if pa.types.is_dictionary(array.type) else array


def exact(array: pa.Array) -> bytes:
    """Return the values of a column, byte by byte; all that are no number are the same."""
    if pa.types.is_floating(array.type):
        values = array.fill_null(0.0).to_numpy(zero_copy_only=False).astype("<f8")
        values[np.isnan(values)] = np.nan
        return bytes(values.tobytes())
    if pa.types.is_integer(array.type):
        return bytes(array.fill_null(0).to_numpy(zero_copy_only=False).astype("<i8").tobytes())
    return json.dumps(array.to_pylist()).encode()


def rounded(array: pa.Array) -> bytes:
    """Return the values of a column with 9 significant digits, and none beyond the last decimal place that counts."""
    if pa.types.is_floating(array.type):
        values = (None if value is None else round(value, SMALLEST) + 0.0 for value in array.to_pylist())
        return " ".join("null" if value is None else f"{value:.8e}" for value in values).encode()
    return exact(array)


def table_hash(tables: Sequence[pa.Table], values: Callable[[pa.Array], bytes] = exact) -> str:
    """Return the SHA-256 of tables: names and types of their columns in order, which values there are, and these."""
    digest = hashlib.sha256()
    for table in tables:
        digest.update(f"{table.num_rows} rows\n".encode())
        for field in table.schema:
            array = plain(table.column(field.name))
            there = array.is_valid().to_numpy(zero_copy_only=False).astype(np.uint8).tobytes()
            for part in (f"{field.name} {field.type}\n".encode(), there, values(array)):
                digest.update(struct.pack("<Q", len(part)) + part)
    return digest.hexdigest()


def run(scenario: str, tables: Tables, *, bits: bool = True) -> dict[str, str]:
    """Return the row of a scenario, run in a folder with the files that it reads (`write_inputs`).

    Without `bits` the row says nothing about single tables and last bits.
    """
    from fedsim import Scenario, simulate
    from fedsim.errors import DataError, ScenarioError, SelectorError

    row = dict.fromkeys(COLUMNS, "") | {"scenario": scenario}
    try:
        history = simulate(Scenario(**tables), data_dir=".", executor="sequential", store=False)
    except (ScenarioError, SelectorError, DataError) as error:
        return row | {"outcome": f"refused {type(error).__name__}"}
    found = {name: getattr(history, name) for name in TABLES}
    there = {name: table.select(FROZEN[name].split()) for name, table in found.items() if table is not None}
    row |= {"outcome": RAN, "rounded": table_hash(list(there.values()), rounded)}
    if not bits:
        return row
    views = [view for view in (getattr(history, name)() for name in VIEWS) if view is not None]
    return row | {name: table_hash([table]) for name, table in there.items()} | {"views": table_hash(views)}


# Command line


def _prepare(folder: str) -> None:
    """Make a process ready to run scenarios: one thread each, among the files that they read."""
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ[name] = "1"
    import torch

    torch.set_num_threads(1)
    os.chdir(folder)


def _timed(job: tuple[str, Tables]) -> tuple[dict[str, str], float]:
    begun_s = time.perf_counter()
    try:
        row = run(*job)
    except Exception as error:
        raise RuntimeError(f"{job[0]}: {type(error).__name__}: {error}") from error
    return row, time.perf_counter() - begun_s


def run_all(chosen: dict[str, Tables], workers: int) -> list[dict[str, str]]:
    rows, begun_s, slowest = [], time.perf_counter(), (0.0, "")
    with tempfile.TemporaryDirectory() as folder:
        write_inputs(Path(folder))
        with ProcessPoolExecutor(workers, initializer=_prepare, initargs=(folder,)) as pool:
            for row, took_s in pool.map(_timed, chosen.items(), chunksize=4):
                rows.append(row)
                slowest = max(slowest, (took_s, row["scenario"]))
                if len(rows) % 50 == 0 or len(rows) == len(chosen):
                    passed_s = time.perf_counter() - begun_s
                    print(f"{len(rows)} of {len(chosen)} in {passed_s:.0f} s", file=sys.stderr)
    print(f"slowest: {slowest[1]}, {slowest[0]:.1f} s", file=sys.stderr)
    return sorted(rows, key=lambda row: row["scenario"])


def read_hashes() -> dict[str, dict[str, str]]:
    with HASHES.open(newline="") as file:
        return {row["scenario"]: row for row in csv.DictReader(file)}


def write_hashes(rows: list[dict[str, str]]) -> None:
    with HASHES.open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def differences(rows: list[dict[str, str]], expected: Mapping[str, Mapping[str, str]]) -> list[str]:
    """Return one line for each scenario of which something differs, with the names of the columns."""
    lines = []
    for row in rows:
        scenario, old = row["scenario"], expected.get(row["scenario"])
        if old is None:
            lines.append(f"{scenario}: is not written")
        elif wrong := [name for name in COLUMNS if row[name] != old[name]]:
            lines.append(f"{scenario}: {' '.join(wrong)}")
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("verb", choices=("write", "check"))
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--only", default="", help="scenarios whose id contains this")
    parser.add_argument("--every", type=int, default=1, help="every so manieth scenario by id")
    parser.add_argument("--backwards", action="store_true", help="run them in the opposite order")
    options = parser.parse_args()
    everything = scenarios()
    ids = [scenario for scenario in everything if options.only in scenario][:: options.every]
    chosen = {scenario: everything[scenario] for scenario in (ids[::-1] if options.backwards else ids)}
    rows = run_all(chosen, options.workers)
    refused = sum(row["outcome"] != RAN for row in rows)
    print(f"{len(rows)} scenarios, {refused} of them refused", file=sys.stderr)
    expected: dict[str, dict[str, str]] = {}
    if options.verb == "check" or len(chosen) < len(everything):
        with contextlib.suppress(FileNotFoundError):
            expected = read_hashes()
    if options.verb == "write":
        kept = {scenario: row for scenario, row in expected.items() if scenario in everything}
        write_hashes(sorted((kept | {row["scenario"]: row for row in rows}).values(), key=lambda row: row["scenario"]))
        return 0
    lines = differences(rows, expected)
    if not options.only and options.every == 1:
        lines += [f"{scenario}: is written, but no scenario" for scenario in expected if scenario not in everything]
    print("\n".join(lines) if lines else "no difference")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
