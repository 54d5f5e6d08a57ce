"""Runs of a paper's methods: in worker processes, each in a run folder, so that a killed study goes on."""

import logging
import os
import re
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from fedsim import Scenario, run
from fedsim.errors import DataError
from fedsim.history import History
from fedsim.results import read_run
from fedsim.results.state import read_state

_NAME: Final = re.compile(r"[a-z0-9][a-z0-9._-]*")
_DIGITS: Final = 10
"""Of a scenario's digest in the name of a folder."""
_WORKERS: Final = "FEDSIM_WORKERS"


class PaperRun(NamedTuple):
    """One run of a study."""

    experiment: str
    method: str
    scenario: Scenario

    @property
    def seed(self) -> int:
        return int(self.scenario.seed)

    def folder(self, out: Path) -> Path:
        """Return the run's folder below that of the study; another scenario has another one."""
        for name in (self.experiment, self.method):
            if not _NAME.fullmatch(name):
                raise ValueError(f"{name!r} is not allowed as a name; allowed: small letters, digits, '.', '_' and '-'")
        return out / self.experiment / self.method / f"seed-{self.seed}-{self.scenario.digest()[:_DIGITS]}"


class Ended(NamedTuple):
    """A run that has ended, or was not possible."""

    run: PaperRun
    folder: Path
    wall_s: float
    skipped: str = ""

    def history(self) -> History:
        return read_run(self.folder)


def scaled(scenario: Scenario, scale: float) -> Scenario:
    """Return the first part of a run: as many rounds as a share of its own says, at least one."""
    if not 0.0 < scale <= 1.0:
        raise ValueError(f"scale: {scale!r} is not allowed; it must be above 0 and at most 1")
    return scenario.replace({"rounds.count": max(1, round(scale * scenario.rounds.count))})


def run_all(
    runs: Sequence[PaperRun],
    out: Path,
    *,
    workers: int = 1,
    executor: str = "auto",
    data_dir: Path | None = None,
    store: Path | None = None,
    tell: Callable[[str], None] = print,
) -> list[Ended]:
    """Run what has not ended so far, and return all runs in their order.

    A run that a kill has cut goes on, and one that has ended is read. A run whose data set is absent is skipped.
    """
    one = partial(run_one, out=out, executor=executor, data_dir=data_dir, store=store)
    ended: dict[int, Ended] = {}

    def note(at: int, found: Ended) -> None:
        ended[at] = found
        what = "skipped, its data are absent" if found.skipped else f"{found.wall_s:.0f} s"
        asked = found.run
        tell(f"[{len(ended)}/{len(runs)}] {asked.experiment} {asked.method} seed {asked.seed}: {what}")

    if workers <= 1:
        for at, asked in enumerate(runs):
            note(at, one(asked))
    else:
        share = max(1, (os.cpu_count() or 1) // workers)
        with ProcessPoolExecutor(workers, initializer=_begin, initargs=(share,)) as pool:
            for at, found in _as_they_end({pool.submit(one, asked): at for at, asked in enumerate(runs)}):
                note(at, found)
    return [ended[at] for at in range(len(runs))]


def run_one(
    asked: PaperRun, *, out: Path, executor: str = "auto", data_dir: Path | None = None, store: Path | None = None
) -> Ended:
    """Run one scenario in its folder, or read it if it has ended; other arguments as of `run_all`."""
    folder = asked.folder(out)
    try:
        run(asked.scenario, folder, executor=executor, data_dir=data_dir, store=store, keeping="last")
    except DataError as error:
        return Ended(asked, folder, 0.0, str(error))
    return Ended(asked, folder, read_state(folder).wall_s)


def _begin(share: int) -> None:
    """Leave a worker's executor its share of the processors, and log errors only."""
    logging.getLogger("fedsim").setLevel(logging.ERROR)  # spent budgets are part of the papers' curves
    os.environ.setdefault(_WORKERS, str(share))


def _as_they_end(places: dict[Future[Ended], int]) -> Iterator[tuple[int, Ended]]:
    """Yield results with their places; the first error ends all runs that have not begun."""
    try:
        for future in as_completed(places):
            yield places[future], future.result()
    finally:
        for future in places:
            future.cancel()
