"""What options of selectors are by default, as their pages and papers say, and values of those that have none."""

import ast
import csv
from collections import defaultdict
from pathlib import Path
from typing import Any

DEFAULTS: dict[str, dict[str, Any]] = defaultdict(dict)
with (Path(__file__).parents[1] / "golden" / "selector_defaults.csv").open(newline="") as _file:
    for _row in csv.DictReader(_file):
        DEFAULTS[_row["kind"]][_row["option"]] = ast.literal_eval(_row["default"])
NEEDED = {"cohort": 3, "deadline_s": 2.0, "samples": 10, "ratio": 0.5, "rate": 0.5}
