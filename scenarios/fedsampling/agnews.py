"""AG News in the format of MIND, so that MIND's loader reads it: a topic and a title for each item."""

import csv
import gzip
import io
from pathlib import Path

from fedsim.errors import DataError
from fedsim.inputs.files import MAX_BYTES, read_bytes
from fedsim.whole_files import replace_file

_TOPICS = {"1": "world", "2": "sports", "3": "business", "4": "technology"}


def converted(source: Path, data_dir: Path) -> Path:
    """Write ``agnews/news.tsv`` into a data folder, unless it is there, and return it."""
    file = data_dir / "agnews" / "news.tsv"
    if file.exists():
        return file
    content, lines = read_bytes(source, MAX_BYTES, DataError), []
    text = (gzip.decompress(content) if source.suffix == ".gz" else content).decode()
    for number, cells in enumerate(csv.reader(io.StringIO(text, newline="")), 1):
        if len(cells) != 3 or cells[0] not in _TOPICS:
            raise DataError(f"{source}: line {number} has {len(cells)} cells; allowed: a topic of 1 to 4, title, text")
        words = f"{cells[1]} {cells[2]}".replace("\t", " ").replace("\n", " ")
        lines.append(f"N{number}\t{_TOPICS[cells[0]]}\t-\t{words}\n")
    file.parent.mkdir(parents=True, exist_ok=True)
    replace_file(file, lambda part: part.write_text("".join(lines), encoding="utf-8"))
    return file
