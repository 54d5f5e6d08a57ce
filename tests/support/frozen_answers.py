"""Yesterday's answers of a part, for tests that ask it a fixed series of questions.

They stand in `tests/golden/answers/`, one file a test and one entry a case, to 9 significant digits and 12 decimal
places. They tell that
something has changed, never what is right. After a change that is meant, write them again with

    FEDSIM_GOLDEN=write pytest -n 0 tests/devices/test_frozen_devices.py

and read the difference in the review.
"""

import dataclasses
import json
import os
from collections.abc import Mapping
from pathlib import Path

import numpy as np

FOLDER = Path(__file__).parents[1] / "golden" / "answers"
DECIMALS = 12
WRITE = "FEDSIM_GOLDEN=write pytest -n 0 with this file"


def check_frozen(file, case, answers):
    """Compare the answers of one case with those that are written, or write them."""
    path = FOLDER / f"{file}.json"
    written = json.loads(path.read_text()) if path.exists() else {}
    found = json.loads(json.dumps(plain(answers)))
    if os.environ.get("FEDSIM_GOLDEN") == "write":
        entries = {**written, case: found}
        lines = [f"{json.dumps(name)}: {json.dumps(entries[name])}" for name in sorted(entries)]
        path.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    else:
        assert found == written.get(case), f"other answers than the frozen ones of {case}; if that is meant: {WRITE}"


def plain(value):
    """Return a value as lists, texts and whole numbers; arrays with their type."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, np.ndarray):
        value = [f"{value.dtype} {'x'.join(map(str, value.shape))}", *value.ravel().tolist()]
    elif dataclasses.is_dataclass(value):
        named = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        value = {name: one for name, one in named.items() if one is not None}
    if isinstance(value, Mapping):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return list(map(plain, value))
    return f"{round(value, DECIMALS) + 0.0:.9g}" if isinstance(value, float) else value
