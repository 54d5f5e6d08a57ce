"""What the store on disk costs: records in batches of 20, arrays of 100 KB and of 44 MB.

    python tests/benchmarks/store.py

prints medians and means of milliseconds, in a folder of its own below the current one; a plain write of 44 MB stands
beside. Not a test: it asserts nothing.
"""

import argparse
import secrets
import statistics
import tempfile
import time
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

import numpy as np

from fedsim.learning.store.disk import DiskStore

BATCH = 20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=20_000, help="records in the store (20000)")
    parser.add_argument("--big", type=int, default=5, help="arrays of 44 MB (5)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=".", prefix="store-benchmark-") as folder:
        measure(Path(folder), options.records // BATCH, options.big)


def measure(folder: Path, batches: int, big: int) -> None:
    store = DiskStore(folder / "store")
    given = [{digest(): {"loss": 0.5, "accuracy": 0.25} for _ in range(BATCH)} for _ in range(batches)]
    say(f"put {BATCH} records", [partial(store.put_records, batch) for batch in given])
    digests = np.random.default_rng(0).permutation([name for batch in given for name in batch]).reshape(-1, BATCH)
    say(f"look {BATCH} records up", [partial(store.records, names) for names in digests[:500].tolist()])
    for label, numbers, times in (("100 KB", 25_000, 200), ("44 MB", 11_000_000, big)):
        arrays = {"vector": np.random.default_rng(0).random(numbers, dtype=np.float32)}
        names = [digest() for _ in range(times)]
        say(f"put {label}", [partial(store.put_arrays, name, arrays) for name in names])
        say(f"get {label}", [partial(store.arrays, name) for name in names])
    content = np.random.default_rng(0).bytes(44_000_000)
    say("plain write of 44 MB", [partial((folder / digest()).write_bytes, content) for _ in range(big)])
    store.close()
    say("open", [partial(DiskStore, folder / "store")] * 5)


def digest() -> str:
    return secrets.token_hex(16)


def say(what: str, pieces: Iterable[Callable[[], object]]) -> None:
    times_ms = []
    for piece in pieces:
        start = time.perf_counter()
        piece()
        times_ms.append(1e3 * (time.perf_counter() - start))
    print(f"{what:<24}median {statistics.median(times_ms):8.3f} ms   mean {statistics.fmean(times_ms):8.3f} ms")


if __name__ == "__main__":
    main()
