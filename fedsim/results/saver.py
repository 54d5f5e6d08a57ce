"""Writes the rows, the state and the models of a run to disk from time to time, with a small share of its time."""

import contextlib
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from numpy.typing import NDArray

from fedsim.errors import RunError, WriteError
from fedsim.history import Recorder
from fedsim.learning.models.settings import Architecture
from fedsim.results.folder import RunFolder
from fedsim.results.models import model_of_round, write_model
from fedsim.rounds import Progress

_SECONDS_BETWEEN_WRITES: Final = 2.0
_SHARE_OF_TIME_WRITING: Final = 0.05
_PATIENCE_S: Final = 600.0
"""How long a disk may be full before it ends the run."""


class Saver:
    """Writes rows, state and models of a run that goes on.

    A write that fails as on a full disk is tried again at the next one, with the rows in memory meanwhile; after ten
    minutes of failures the run ends.
    """

    recorder: Recorder
    architecture: Architecture | None

    def __init__(self, folder: RunFolder, save_models: int | None, say: Callable[[str], None]) -> None:
        self._folder, self._save_models, self._say = folder, save_models, say
        self._due = time.perf_counter()
        self._failing_since: float | None = None
        self._models: list[tuple[int, Architecture, Mapping[str, NDArray[Any]]]] = []

    def after_round(self, progress: Progress) -> None:
        """Mark the end of a round, and write what is due."""
        self._folder.mark(self.recorder.counts())
        if self._save_models is not None and progress.round % self._save_models == 0:
            self._take_model(progress)
            self._try(self._save_models_taken)
        began = time.perf_counter()
        if began < self._due:
            return
        self._try(self._save)
        spent = time.perf_counter() - began
        self._due = began + max(_SECONDS_BETWEEN_WRITES, spent / _SHARE_OF_TIME_WRITING)

    def end(self, error: BaseException) -> None:
        # Where these rows or the state cannot be written, what was written before stays.
        with contextlib.suppress(Exception):
            self.recorder.flush()
        with contextlib.suppress(RunError):
            self._folder.save("interrupted" if isinstance(error, KeyboardInterrupt) else "failed", error)

    def finish(self) -> None:
        """Write models that could not be written before."""
        self._save_models_taken()

    def _save(self) -> None:
        self._save_models_taken()
        self.recorder.flush()
        self._folder.save("running")
        self._failing_since = None

    def _try(self, write: Callable[[], None]) -> None:
        now_s = time.perf_counter()
        try:
            write()
        except WriteError as error:
            if self._failing_since is None:
                self._failing_since = now_s
                self._say(f"{error}; the run goes on, and this is tried again")
            if now_s - self._failing_since >= _PATIENCE_S:
                raise

    def _take_model(self, progress: Progress) -> None:
        # A replay has it already: files of a run that goes on stay, and each is whole.
        if self.architecture is None or (self._folder.place / model_of_round(progress.round)).exists():
            return
        arrays = progress.weights()
        if arrays is not None:
            self._models.append((progress.round, self.architecture, arrays))

    def _save_models_taken(self) -> None:
        while self._models:
            number, architecture, arrays = self._models[0]
            write_model(self._folder.claim(model_of_round(number)), arrays, architecture, number)
            del self._models[0]
