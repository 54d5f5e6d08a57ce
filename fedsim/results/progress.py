"""A live bar of a run: round, simulated time, accuracy, rounds per second and time left."""

import math
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress as Bar, ProgressColumn, Task, TextColumn, TimeRemainingColumn
from rich.text import Text

from fedsim.learning import PendingEvaluation
from fedsim.rounds import Progress


class _RoundsPerSecond(ProgressColumn):
    def render(self, task: Task) -> Text:
        speed = task.finished_speed or task.speed
        return Text("- rounds/s" if speed is None else f"{speed:,.0f} rounds/s", no_wrap=True)


class RoundBar:
    """The progress of a run on a terminal; nothing is shown on other outputs."""

    def __init__(self, title: str, count: int, console: Console, *, quiet: bool = False) -> None:
        self._bar = Bar(
            TextColumn("{task.description}"),
            BarColumn(bar_width=8),
            TextColumn("round {task.completed:.0f}/{task.total:.0f}"),
            TextColumn("{task.fields[time_s]:,.1f} s sim"),
            TextColumn("acc {task.fields[accuracy]}"),
            _RoundsPerSecond(),
            TimeRemainingColumn(),
            console=console,
            disable=quiet or not console.is_terminal,
        )
        self._task = self._bar.add_task(title, total=count, time_s=0.0, accuracy="-")
        self._accuracy = "-"
        self._pending: PendingEvaluation | None = None

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()

    def show(self, progress: Progress) -> None:
        if progress.pending is not None:
            self._pending = progress.pending
        # To wait for an evaluation here would keep it from running beside the next trainings.
        if self._pending is not None and self._pending.done():
            accuracy = self._pending.result().accuracy
            self._accuracy = "-" if math.isnan(accuracy) else f"{accuracy:.1%}"
            self._pending = None
        self._bar.update(self._task, completed=progress.round, time_s=progress.time_s, accuracy=self._accuracy)
