"""The run folder of a testbed: tables while rounds are played, figures and a summary at the end."""

from pathlib import Path

from fedsim.history import History, Recorder
from fedsim.results.folder import RunFolder
from fedsim.results.models import with_model
from fedsim.results.recording import write_results
from fedsim.results.saver import Saver
from fedsim.rounds import Progress
from fedsim.scenario import Scenario


class Recording:
    """The folder of one run whose cohorts come from outside."""

    def __init__(self, path: str | Path, scenario: Scenario, *, replace: bool) -> None:
        self._scenario = scenario
        self._folder = RunFolder(path, scenario, replace=replace, cohorts="outside")
        self._folder.__enter__()
        self.recorder = Recorder(scenario.name, self._folder.spool)
        self._saver = Saver(self._folder, None, _say_nothing)
        self._saver.recorder = self.recorder

    def begin(self, data_digest: str | None) -> None:
        self._folder.begin(None, data_digest)

    def after_round(self, progress: Progress) -> None:
        self._saver.after_round(progress)

    def finish(self, history: History) -> History:
        """Write tables, summary and figures of a run that is over, and close the folder."""
        self._saver.finish()
        self._folder.write_tables(self.recorder)
        write_results(self._folder.place, self._scenario, history, self.recorder.batches("participations"))
        self._folder.finish()
        self.close()
        return with_model(history, self._folder.path)

    def fail(self, error: BaseException) -> None:
        self._saver.end(error)
        self.close()

    def close(self) -> None:
        self._folder.__exit__(None, None, None)


def _say_nothing(text: str) -> None:
    """Take a line for a user who wants none."""
