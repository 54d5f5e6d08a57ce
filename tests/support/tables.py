"""Tables in files of several forms, and who is there by them."""

from pathlib import Path

import numpy as np
from pyarrow import csv, parquet

from fedsim.devices.availability.traces import Traces
from fedsim.run_setup import RunSetup
from fedsim.streams import Streams


def written(path: Path, text: str) -> Path:
    """Write text, as Parquet with the types of its columns where the suffix says so, and return its path."""
    path.write_text(text)
    if path.suffix == ".parquet":
        table = csv.read_csv(path, parse_options=csv.ParseOptions(delimiter=";" if ";" in text else ","))
        parquet.write_table(table, path)
    return path


def there(path: Path, clients: int, times_s: list[float], **options: object) -> list[list[int]]:
    found = Traces(path=str(path), **options).build(RunSetup(clients, Streams(0)))
    return [found.available(np.arange(clients), time_s, 1).astype(int).tolist() for time_s in times_s]
