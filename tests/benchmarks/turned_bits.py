"""How many single turned bits in the files of a run change what is read, without an error.

    python tests/benchmarks/turned_bits.py [--flips 500] [--seed 0]

Each flip is one bit of one file, put back afterwards. A flip counts as refused if reading raises fedsim's error, as
without effect if everything that is read is as before, and as silent otherwise. The last two rows read the Parquet file
as other programs do, with the checksums of its pages and without.
"""

import argparse
import contextlib
import random
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from fedsim import Scenario, load_model, read_run, run
from fedsim.errors import RunError
from fedsim.results import read_summary

SCENARIO = Scenario(
    name="turned",
    crowd={"clients": 40},
    learning={"model": {"kind": "mlp", "hidden": [8]}},
    network="pause-two-speed",
    devices={"compute": "zero"},
    rounds={"count": 40},
    selector={"kind": "uniform", "cohort": 20},
)


def stop(progress: Any) -> None:
    if progress.round == 30:
        raise KeyboardInterrupt


def content(folder: Path) -> Any:
    found: dict[str, Any] = {name: table.to_pydict() for name, table in read_run(folder).tables().items()}
    if folder.name == "finished":
        found["summary"] = read_summary(folder)
        found["model"] = {name: values.tolist() for name, values in load_model(folder).state_dict().items()}
    return found


def count(file: Path, read: Callable[[], Any], flips: int, draws: random.Random) -> Counter[str]:
    """Return how many flips were refused, without effect, and silent."""
    before, expected, told = file.read_bytes(), read(), Counter[str]()
    for _ in range(flips):
        bits = bytearray(before)
        bits[draws.randrange(len(bits))] ^= 1 << draws.randrange(8)
        file.write_bytes(bits)
        try:
            told["no effect" if read() == expected else "silent"] += 1
        except (RunError, OSError, ValueError, pa.ArrowException):
            told["refused"] += 1
    file.write_bytes(before)
    return told


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--flips", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    draws = random.Random(options.seed)  # noqa: S311
    with tempfile.TemporaryDirectory() as base:
        finished, interrupted = Path(base) / "finished", Path(base) / "interrupted"
        run(SCENARIO, finished, store=False)
        with contextlib.suppress(KeyboardInterrupt):
            run(SCENARIO, interrupted, store=False, on_round=stop)
        files = [finished / name for name in ("participations.parquet", "rounds.parquet", "summary.json")]
        files += [finished / "model.safetensors", finished / "run.json"]
        files += [interrupted / name for name in ("participations.arrows", "rounds.arrows", "run.json")]
        print("| file | flips | refused | no effect | silent |\n|---|---|---|---|---|")
        for file in files:
            told = count(file, lambda file=file: content(file.parent), options.flips, draws)  # type: ignore[misc]
            show(f"{file.parent.name} `{file.name}`", told)
        file = finished / "participations.parquet"
        for verify, words in ((True, "pages compared"), (False, "as before")):

            def read(verify: bool = verify) -> Any:
                with file.open("rb") as opened:
                    return pq.ParquetFile(opened, page_checksum_verification=verify).read().to_pydict()

            show(f"`{file.name}` by pyarrow, {words}", count(file, read, options.flips, draws))


def show(name: str, told: Counter[str]) -> None:
    print(f"| {name} | {told.total()} | {told['refused']} | {told['no effect']} | {told['silent']} |", flush=True)


if __name__ == "__main__":
    main()
