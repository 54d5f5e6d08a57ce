"""A run in a folder: tables while the run goes on, figures and a summary at the end."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from fedsim.history import History, draw
from fedsim.learning import MakeExecutor, Precision
from fedsim.results.folder import RunFolder
from fedsim.results.summary import summarise
from fedsim.rounds import Progress
from fedsim.scenario import Scenario
from fedsim.simulation import Simulation

_SECONDS_BETWEEN_WRITES: Final = 2.0
_SHARE_OF_TIME_WRITING: Final = 0.05


def run(
    scenario: Scenario,
    out: str | Path | None = None,
    *,
    data_dir: str | Path | None = None,
    store: Any = None,
    replace: bool = False,
    on_round: Callable[[Progress], None] | None = None,
    executor: str | MakeExecutor | None = None,
    device: str | None = None,
    precision: Precision = "float32",
) -> History:
    """Run a scenario, keep it in a folder and return its history.

    Parameters
    ----------
    scenario : what is run
    out : folder; ``runs/<name of the scenario>`` by default
    data_dir, store, on_round, executor, device, precision : as for `fedsim.simulate`
    replace : whether a folder that holds another scenario's run may be written over

    Raises
    ------
    RunError
        If the folder cannot be used; nothing has been computed then.
    """
    folder_path = Path("runs") / scenario.name if out is None else Path(out)
    writer: _Writer | None = None

    def after_round(progress: Progress) -> None:
        if writer is not None:
            writer.write_if_due()
        if on_round is not None:
            on_round(progress)

    simulation = Simulation(
        scenario,
        data_dir=data_dir,
        store=store,
        on_round=after_round,
        executor=executor,
        device=device,
        precision=precision,
    )
    writer = _Writer(RunFolder(folder_path, scenario, replace=replace), simulation)
    status = "interrupted"
    try:
        history = simulation.run()
        status = "finished"
    finally:
        writer.write(status)
    write_results(writer.folder, history)
    return history


def write_results(folder: RunFolder, history: History) -> None:
    """Write summary and figures of a finished run."""
    settings = folder.scenario.results
    folder.write_json("summary.json", summarise(history, settings.target_accuracy, settings.smoothing))
    draw([history], "round", "duration", out=folder.path / "round_durations.png")
    if history.evaluations.num_rows:
        draw([history], "time", "accuracy", smoothing=settings.smoothing, out=folder.path / "accuracy.png")
        draw([history], "round", "accuracy", smoothing=settings.smoothing, out=folder.path / "accuracy_by_round.png")
    if folder.scenario.privacy is not None:
        draw([history], "time", "leakage", out=folder.path / "leakage.png")


class _Writer:
    """Writes the tables from time to time, with a small share of the run's time."""

    def __init__(self, folder: RunFolder, simulation: Simulation) -> None:
        self.folder, self._simulation = folder, simulation
        self._began = self._due = time.perf_counter()

    def write_if_due(self) -> None:
        if time.perf_counter() >= self._due:
            self.write("running")

    def write(self, status: str) -> None:
        began = time.perf_counter()
        self.folder.write(self._simulation.history(), status, began - self._began)
        spent = time.perf_counter() - began
        self._due = began + max(_SECONDS_BETWEEN_WRITES, spent / _SHARE_OF_TIME_WRITING)
