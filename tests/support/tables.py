"""Tables in files of several forms."""

from pathlib import Path

from pyarrow import csv, parquet


def written(path: Path, text: str) -> Path:
    """Write text, as Parquet with the types of its columns where the suffix says so, and return its path."""
    path.write_text(text)
    if path.suffix == ".parquet":
        table = csv.read_csv(path, parse_options=csv.ParseOptions(delimiter=";" if ";" in text else ","))
        parquet.write_table(table, path)
    return path
