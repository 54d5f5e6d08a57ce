"""FedSUV's tasks, methods and ways of aggregation, and what its paper reports of each."""

import sys
import tomllib
from pathlib import Path
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).parents[1]))

from paper_runs.runs import Values
from paper_runs.tables import reported

from fedsim import Scenario

HERE: Final = Path(__file__).parent
_FILE: Final[dict[str, Any]] = tomllib.loads((HERE / "methods.toml").read_text(encoding="utf-8"))
COLUMNS: Final[list[dict[str, Any]]] = _FILE["columns"]
LABELS: Final[dict[str, str]] = {name: of["label"] for name, of in _FILE["methods"].items()}
METHODS: Final[dict[str, Values]] = {name: of["set"] for name, of in _FILE["methods"].items()}
SERVERS: Final[dict[str, Values]] = _FILE["servers"]
PAPER: Final = reported(HERE / "paper.csv", "task", "aggregation", "method")
TASKS: Final = {task: row["title"] for (task, _, _), row in PAPER.items()}
"""Titles of the tasks by the name of their file."""


def base_of(task: str, local: str, values: Values | None = None) -> Scenario:
    """Return what all runs of a task have in common, under one reading of "local epochs"."""
    base = Scenario.load(HERE / f"{task}.toml").replace(values or {})
    if local == "steps":
        return base
    steps = base.describe()["learning"]["local"]["steps"]
    epochs = {"learning.local.steps": None, "learning.local.epochs": steps}
    return base.replace({**epochs, "selector.samples_per_round": None})
