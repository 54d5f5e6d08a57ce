"""A run in a folder: tables while the run goes on, figures and a summary at the end."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace as with_fields
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from fedsim.answers import ShortTraceback
from fedsim.answers.module_values import hashes, variables_of
from fedsim.answers.opened_files import nothing_noted, opened_files, unchanged, with_untold
from fedsim.errors import DistrustError, RunError
from fedsim.history import History, Recorder, draw, draw_clients, draw_durations
from fedsim.history.fairness import last_accuracies
from fedsim.history.tables import has_values
from fedsim.identity import parts_of, users_own
from fedsim.learning import EXECUTORS, ExecutorUsed, Keeping, MakeExecutor, Precision, Work
from fedsim.learning.data.handed import HandedData
from fedsim.learning.lineage.behaviour import is_own
from fedsim.learning.store.choice import StoreChoice
from fedsim.results.folder import RunFolder
from fedsim.results.manifest import FIGURES, MODEL, SUMMARY
from fedsim.results.models import with_model, write_model
from fedsim.results.saver import Saver
from fedsim.results.state import versions, write_json
from fedsim.results.summary import summarise
from fedsim.results.tables import read_run
from fedsim.rounds import Progress
from fedsim.scenario import Scenario
from fedsim.scenario.disclosure import remarks_of, side_information_of
from fedsim.scenario.doubts import doubts_of
from fedsim.simulation import EvaluatingAll, Simulation, asked_of


def run(
    scenario: Scenario | str | Path | Mapping[str, Any],
    out: str | Path | None = None,
    *,
    data_dir: str | Path | None = None,
    store: StoreChoice = None,
    keeping: Keeping | str | None = None,
    replace: bool = False,
    on_round: Callable[[Progress], None] | None = None,
    executor: str | MakeExecutor | None = None,
    device: str | None = None,
    precision: Precision | None = None,
    fast: bool | None = None,
    save_models: int | None = None,
    tell: Callable[[str], None] | None = None,
) -> History:
    """Run a scenario in a folder and return its history.

    A run that was killed, interrupted or has failed goes on: it is replayed from its first round, which is cheap since
    its trainings are found in the store, and ends in the same tables. A finished one is read.

    Parameters
    ----------
    scenario : what is run: a scenario, the path of its TOML file, or its tables
    out : folder; ``runs/<name of the scenario>`` by default
    data_dir, store, keeping, on_round : as for `fedsim.simulate`
    executor, device, precision, fast : as for `fedsim.simulate`; a run that goes on has those that it began with,
        unless they are given
    save_models : the model after each round whose number is a multiple of it is saved; with None the final one only
    replace : whether the run that the folder holds is thrown away, be it another scenario's or a finished one
    tell : called with each line of text for the user

    Returns
    -------
    History

    Raises
    ------
    RunError
        If the folder cannot be used, or another process uses it; nothing has been computed then. If the replay does
        not give the rows that the folder has. If the folder can no longer be written.

    Examples
    --------
    >>> from fedsim import Scenario
    >>> scenario = Scenario.load("scenarios/pause/fig2_cifar_iid_small.toml")
    >>> scenario = scenario.replace({"rounds.count": 2, "learning": "none"})
    >>> run(scenario, "runs/short").rounds.num_rows
    2
    >>> (Path("runs/short") / "rounds.parquet").exists()
    True
    """
    scenario = Scenario.of(scenario)
    path = Path("runs") / scenario.name if out is None else Path(out)
    if save_models is not None and save_models < 1:
        raise RunError(f"save_models: {save_models!r} is not allowed; it must be at least 1")
    say = tell or say_nothing
    asked = {"executor": executor, "device": device, "precision": precision, "fast": fast}
    given = {name: value for name, value in asked.items() if value is not None}
    computing = {"data_dir": data_dir, "store": store, "keeping": keeping, **given}
    record = partial(_record, scenario, path, say, computing, on_round=on_round, save_models=save_models)
    try:
        return record(replace=replace)
    except DistrustError as error:
        say(str(error))
        return record(replace=True)


def _record(
    scenario: Scenario,
    path: Path,
    say: Callable[[str], None],
    computing: Mapping[str, Any],
    *,
    replace: bool,
    on_round: Callable[[Progress], None] | None,
    save_models: int | None,
) -> History:
    # Parts of the learning are known by their numbers.
    own = {place: code for place, code in users_own(scenario).items() if place.partition(".")[0] != "learning"}
    with ShortTraceback(), RunFolder(path, scenario, replace=replace) as folder, opened_files() as opened:
        if folder.finished:
            before = _executor_before(folder)
            by = _by_another_release(folder) + (", with --fast" if before is not None and before.fast else "")
            say(f"{path}: was finished before{by}; nothing is computed, and --force runs it again")
            if own:
                say(f"{path}: {', '.join(own)}: known by code, files, environment and module variables")
            _check_own_parts(folder, computing["data_dir"])
            return _finished_before(folder, computing["data_dir"])
        saver = Saver(folder, save_models, say)

        def after_round(progress: Progress) -> None:
            saver.after_round(progress)
            if on_round is not None:
                with nothing_noted():
                    on_round(progress)

        used = None if "executor" in computing else _executor_before(folder)
        recorder = Recorder(scenario.name, folder.spool)
        make: Callable[..., Simulation] = partial(Simulation, **{**(used.asked if used else {}), **computing})
        variables = hashes(variables_of(own.values()))
        simulation = make(scenario, on_round=after_round, recorder=recorder)
        if folder.state is not None:
            say(f"{path}: goes on after round {folder.state.rounds} ({folder.state.status})")
        learner = simulation.context.learner
        saver.recorder, saver.architecture = recorder, learner.architecture
        now = simulation.executor_used
        for note in simulation.foreseen:
            say(note)
        folder.opened = opened.contents()
        folder.begin(None if now is None else now.to_json(), learner.data_digest)
        try:
            history = with_model(simulation.run(), path)
            folder.outside = opened.untold(" or ".join(scenario.code()))
            history = with_fields(history, remarks=with_untold(history.remarks, folder.outside))
            saver.finish()
            folder.write_tables(recorder)
            trained = simulation.trained()
            if trained is not None:
                write_model(folder.claim(MODEL), trained.arrays, trained.architecture, history.rounds.num_rows)
                history = with_fields(history, find_evaluations=EvaluatingAll(scenario, make))
            write_results(folder.place, scenario, history, recorder.batches("participations"))
        except BaseException as error:
            saver.end(error)
            raise
        folder.opened = opened.contents() | unchanged(variables)
        folder.finish()
        if trained is not None:
            say(_told(learner.work))
        return history


def write_results(
    place: Path,
    scenario: Scenario,
    history: History,
    participations: Iterable[pa.RecordBatch] | None = None,
) -> None:
    settings = scenario.results
    budget = None if scenario.privacy is None else scenario.privacy.total
    summary = summarise(
        history, settings.target_accuracy, settings.smoothing, participations, budget, side_information_of(scenario)
    )
    write_json(place / SUMMARY, summary)
    if history.rounds.num_rows:
        draw_durations(history, out=place / "round_durations.png")
    if has_values(history, "accuracy"):
        draw([history], "time", "accuracy", out=place / "accuracy.png")
        draw([history], "round", "accuracy", out=place / "accuracy_by_round.png")
    elif has_values(history, "loss"):
        draw([history], "time", "loss", out=place / "loss.png")
    if last_accuracies(history)[1].size:
        draw_clients([history], out=place / "accuracy_of_clients.png")
    if scenario.privacy is not None:
        draw([history], "time", "leakage", out=place / "leakage.png")


def _check_own_parts(folder: RunFolder, data_dir: str | Path | None) -> None:
    """Refuse a finished run where own parts of the learning give other numbers, which no digest of a scenario shows."""
    learning = folder.scenario.learning
    parts = (learning, *(part for _, part in parts_of(learning)))
    if any(is_own(one) and not (isinstance(one, HandedData) and one.content) for one in parts):
        before = _executor_before(folder)
        kind = before.kind if before is not None else None
        again = Simulation(folder.scenario, data_dir=data_dir, store=False, executor=kind)
        folder.check_same(again.context.learner.data_digest)


def _finished_before(folder: RunFolder, data_dir: str | Path | None) -> History:
    """Return the history of a finished run; a summary or a figure that is gone is made again from its tables."""
    history = read_run(folder.path)
    gone = folder.missing()
    if lost := sorted(set(gone) - {SUMMARY, *FIGURES}):
        raise RunError(f"{folder.path}: lacks {', '.join(lost)}, which its run wrote; --force runs the scenario again")
    if gone:
        if SUMMARY in gone:
            history = with_fields(
                history,
                remarks=_foreseen(folder.scenario, data_dir) + _ended_early(folder.scenario, history),
                **asked_of(folder.scenario, history.digest or folder.scenario.digest()),
            )
        write_results(folder.path, folder.scenario, history)
        folder.written_again()
    return history


def _foreseen(scenario: Scenario, data_dir: str | Path | None) -> tuple[str, ...]:
    """Return what is known before a run; of the scenario alone where its data or parts are gone."""
    try:
        return Simulation(scenario, data_dir=data_dir, store=False).foreseen
    except Exception as error:
        gone = (
            "the summary was made anew, and without notes on data and times of clients, since the run cannot be built"
        )
        return (*doubts_of(scenario), *remarks_of(scenario), f"{gone}: {str(error).partition(chr(10))[0]}")


def _ended_early(scenario: Scenario, history: History) -> tuple[str, ...]:
    """Return a sentence if a finished run has fewer rounds than its scenario counts."""
    rounds, asked = history.rounds.num_rows, scenario.rounds
    if rounds == asked.count or any(end is not None for end in (asked.until_s, asked.target_accuracy, asked.target)):
        return ()
    return (f"the run ended after round {rounds} of {asked.count}",)


def _by_another_release(folder: RunFolder) -> str:
    """Return in words which other release of fedsim has computed a finished run; empty for this one."""
    package = "fedsim-des"
    then, now = (folder.state.versions if folder.state else {}).get(package), versions().get(package)
    return "" if then is None or then == now else f" by fedsim {then} (this is {now})"


def _executor_before(folder: RunFolder) -> ExecutorUsed | None:
    """Return the executor that an unfinished run began with; a class of the user's own is not imported for a file."""
    before = None if folder.state is None else folder.state.executor
    if before is None:
        return None
    used = ExecutorUsed.from_json(before)
    if used.kind not in EXECUTORS.kinds():
        raise RunError(
            f"{folder.path}: its run was begun with the executor {used.kind!r}, which is not one of fedsim's or of an "
            "installed package; name an executor (--executor) to go on"
        )
    return used


def _told(work: Work) -> str:
    """Return in words what was computed, and what was found."""
    parts = {
        "trainings": (work.trained, work.trainings_found),
        "evaluations": (work.evaluated, work.evaluations_found),
        "losses of clients": (work.probed, work.probes_found),
    }
    told = [f"{what}: {new:,} computed, {found:,} found" for what, (new, found) in parts.items() if new or found]
    return "; ".join(told)


def say_nothing(text: str) -> None: ...
