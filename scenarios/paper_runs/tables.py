"""Tables of a paper's figures beside those of fedsim, in Markdown."""

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from fedsim.whole_files import replace_file


def markdown(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table; each row has a cell for each head."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def with_deviation(values: Sequence[float], digits: int = 1, unit: str = "") -> str:
    """Return the mean of some values in words, with their standard deviation if there are two or more."""
    finite = [value for value in values if math.isfinite(value)]
    if not finite:
        return "never" if values else "-"
    text = f"{np.mean(finite):.{digits}f}"
    if len(finite) > 1:
        text += f" +- {np.std(finite, ddof=1):.{digits}f}"
    text += unit
    return text if len(finite) == len(values) else f"{text} ({len(finite)} of {len(values)})"


def write(text: str, file: Path) -> None:
    """Write a text in place of a file, as a whole or not at all."""
    file.parent.mkdir(parents=True, exist_ok=True)
    replace_file(file, lambda part: part.write_text(text, encoding="utf-8"))
