"""One run that is stepped from outside."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike

from fedsim.arrays import FloatArray
from fedsim.bridges.testbed.checks import checked_cohort, checked_statement
from fedsim.bridges.testbed.reported import Key, ReportedLearner
from fedsim.bridges.testbed.stated import Stated, StatedComputeTimes, StatedWorkload
from fedsim.bridges.testbed.stepping import Stepping
from fedsim.errors import StepError
from fedsim.history import History, Recorder
from fedsim.history.outcomes import NO_VALUE, Fate
from fedsim.learning import Evaluation
from fedsim.results.folder import RunFolder
from fedsim.results.models import with_model
from fedsim.results.recording import say_nothing, write_results
from fedsim.results.saver import Saver
from fedsim.rounds import EvaluationPlan, Knowledge, Progress, ServerContext
from fedsim.rounds.clients.cohort import CohortRun
from fedsim.rounds.effects.privacy.releases import Releases
from fedsim.rounds.effects.privacy.side_numbers import SideNumbers
from fedsim.rounds.server.outside import Asked, Decisions, Wish
from fedsim.scenario import Scenario
from fedsim.selectors import Cohort, Reports, RoundView, SelectorPort
from fedsim.simulation import Outside, Simulation


def snapshot(view: RoundView, features: FloatArray) -> RoundView:
    """Return copies of the columns of a view, those made at request included."""
    columns: dict[str, Any] = {field.name: getattr(view, field.name) for field in fields(RoundView)}
    copied = {name: _copy(value) for name, value in columns.items() if isinstance(value, np.ndarray)}
    made = {name: _copy(make()) for name, make in view.at_request.items()}
    at_request = {name: (lambda column=column: column.copy()) for name, column in made.items()}
    whole = {**columns, **copied, "features": _copy(features[view.client]), "at_request": at_request}
    return RoundView(**whole)


def no_candidates(knowledge: Knowledge, number: int, time_s: float) -> RoundView:
    return replace(knowledge.view(number, time_s, np.zeros(0, dtype=np.int64)), at_request={})


def _copy(column: Any) -> Any:
    copied = np.array(column)
    copied.flags.writeable = False
    return copied


class Recording:
    def __init__(self, path: str | Path, scenario: Scenario, *, replace: bool) -> None:
        self._scenario = scenario
        self._folder = RunFolder(path, scenario, replace=replace, cohorts="outside")
        self._folder.__enter__()
        self.recorder = Recorder(scenario.name, self._folder.spool)
        self._saver = Saver(self._folder, None, say_nothing)
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


OPEN_END: Final = 10**6
"""Number of rounds of a scenario whose end the caller alone decides."""
NOTE: Final = "the cohorts came from outside, by the calls of a testbed"


class OutsideRun:
    context: ServerContext
    learner: ReportedLearner

    def __init__(
        self,
        scenario: Scenario,
        out: str | Path | None,
        data_dir: str | Path | None,
        *,
        replace: bool,
        on_round: Callable[[Progress], None] | None,
    ) -> None:
        if scenario.rounds.edges is not None:
            raise StepError(
                "rounds.edges: a testbed steps the rounds of one server; allowed: a scenario without edge servers"
            )
        self.scenario, self.decisions, self._on_round = scenario, Decisions(), on_round
        self._recording = None if out is None else Recording(out, scenario, replace=replace)
        try:
            self._simulation = Simulation(
                scenario,
                data_dir=data_dir,
                store=False,
                on_round=self._after_round,
                recorder=None if self._recording is None else self._recording.recorder,
                outside=Outside(self.decisions, self._adapt, EvaluationPlan()),
            )
            if self._recording is not None:
                self._recording.begin(self._data_digest)
        except BaseException:
            if self._recording is not None:
                self._recording.close()
            raise
        self._evaluated = -1
        self.stepping = Stepping(self._simulation.server, self.decisions)
        self._latest: dict[int, Key] = {}
        self._selected: tuple[int, float, Cohort] | None = None
        self._history: History | None = None
        self.on_pause: Callable[[], bool] = bool

    def _adapt(self, context: ServerContext) -> ServerContext:
        """Return what a run depends on, with what is stated and reported in the place of what is learned."""
        clients, learner = context.clients, context.learner
        self._stated, self.learner = Stated(learner.samples.size), ReportedLearner(learner)
        self._data_digest = learner.data_digest
        clients.workload = StatedWorkload(clients.workload, self._stated)
        clients.compute = StatedComputeTimes(clients.compute, self._stated)
        self.context = replace(context, learner=self.learner, selector=_Asked(context.selector).port)
        numbers, releases = context.effects.of(SideNumbers), context.effects.of(Releases)
        if numbers is not None:
            numbers.from_outside = True
        if releases is not None:
            releases.learner = None
        return self.context

    def weigh(self, weight: Mapping[int, float]) -> None:
        closed = self.decisions.closed
        for run, places in [] if closed is None else closed.served:
            each = run.each()
            for i, client in zip(places.tolist(), run.cohort.client[places].tolist(), strict=True):
                each.used_weight[i] = one = weight.get(client, each.used_weight[i])
                if one == 0:
                    each.fate[i], each.served_round[i], each.staleness[i] = Fate.WASTED_UNMERGED, NO_VALUE, NO_VALUE

    def _after_round(self, progress: Progress) -> None:
        if self._recording is not None:
            self._recording.after_round(progress)
        if self._on_round is not None:
            self._on_round(progress)

    @cached_property
    def concurrency(self) -> int | None:
        """How many clients an asynchronous server has in flight at most; None for a synchronous one."""
        return self.context.rules.policy.traits.concurrency

    def question(self, call: str) -> Asked:
        asked = self.to_question()
        if asked is None:
            raise self.over(call)
        return asked

    def leave_report(self, call: str) -> None:
        """Go on from a round that is over, without a wait for candidates of the next one."""
        if self._history is None and (self.stepping.asked is Asked.REPORT or not self.stepping.begun):
            self.stepping.answer(None)
            self.stepping.go_on(self.stepping.now_s)
            self.on_pause()
        if self._history is not None or self.stepping.over:
            raise self.over(call)

    def wait_for_candidates(self, call: str, until_s: float) -> None:
        """Go on from a round that is over until the server waits for clients, or to an instant."""
        self.leave_report(call)
        self.stepping.go_on(until_s)
        if self.stepping.over:
            raise self.over(call)
        if self.stepping.asked is None:
            self.stepping.move_to(until_s)

    def to_question(self, *, past_arrivals: bool = True) -> Asked | None:
        """Go on until the server waits for clients; None if the run is over."""
        stepping = self.stepping
        while self._history is None and not stepping.over and stepping.asked in (None, Asked.REPORT):
            stepping.answer(None)
            stepping.go_on()
            if self.on_pause() and not past_arrivals:
                break
        return None if self._history is not None or stepping.over else stepping.asked

    def over(self, call: str) -> StepError:
        notes = [note for note in self._simulation.server.notes if note != NOTE]
        why = notes[-1] if notes else f"rounds.count = {self.scenario.rounds.count}, or another end of the scenario"
        return StepError(f"{call}: the run is over ({why}); allowed: finish")

    def view(self) -> RoundView:
        """Return copies of the columns that the selector would see now."""
        found = self.decisions.server.look()
        if found is None:
            return no_candidates(self.context.knowledge, self.decisions.number, self.stepping.now_s)
        return snapshot(found, self._features)

    def select(self, asked: Asked) -> Cohort:
        """Return the selector's cohort now, or its clients for vacant places; an empty one for none."""
        if asked is Asked.PLACES:
            return self._for_places()
        number, now_s = self.decisions.number, self.stepping.now_s
        if self._selected is not None and self._selected[:2] == (number, now_s):
            return self._selected[2]
        while True:
            self.stepping.answer(Wish.SELECTORS)
            if self.stepping.go_on() is None:
                return _no_clients()
            if self.decisions.number == number:
                break
            number = self.decisions.number  # the server has crashed during the question
        cohort = self.decisions.take_selected() or _no_clients()
        self._selected = number, self.stepping.now_s, cohort
        return cohort

    def _for_places(self) -> Cohort:
        if self.context.selector.probe is not None:
            raise StepError(
                f"select: {self.context.selector.name} asks clients a question first, which a testbed does not play at "
                "an asynchronous server; allowed: cohorts of your own, or another selector"
            )
        vacant = self.vacant
        chosen = self.decisions.server.selected(vacant) if vacant else None
        return chosen or _no_clients()

    @property
    def vacant(self) -> int:
        return max(0, (self.concurrency or 0) - self.decisions.server.in_flight)

    def stated(
        self, call: str, argument: str, cohort: Cohort | ArrayLike, statement: Mapping[str, ArrayLike | None]
    ) -> Cohort:
        known, now = self._selected, (self.decisions.number, self.stepping.now_s)
        if known is not None and cohort is known[2] and known[:2] == now:
            checked = known[2]
        else:
            view = self.decisions.server.look()
            checked = checked_cohort(f"{call}: {argument}", cohort, view, self.learner.samples.size)
        values = checked_statement(call, checked.client.size, self.learner.flops_per_sample, statement)
        self._stated.put(checked.client, values)
        self._selected = None
        return checked

    @property
    def awaits_evaluation(self) -> bool:
        """Whether an evaluation of the newest model may be reported now."""
        asked = self.stepping.asked
        if asked in (Asked.COHORT, Asked.PLACES):
            return self._evaluated != self._last_number
        return asked is Asked.REPORT or not self.stepping.begun

    @property
    def _last_number(self) -> int:
        return 0 if self.decisions.closed is None else self.decisions.closed.number

    def evaluate(self, evaluation: Evaluation) -> None:
        self._evaluated, self.learner.evaluation = self._last_number, evaluation
        if self.stepping.asked in (Asked.COHORT, Asked.PLACES):
            self._simulation.server.evaluate()

    def unstate(self) -> None:
        """Forget what was stated: it held for one cohort."""
        self._stated.clear()

    def remember(self, members: list[tuple[CohortRun, int]]) -> None:
        """Take note of the newest participation of clients, which reports are about."""
        for run, i in members:
            client = int(run.cohort.client[i])
            self._latest[client] = client, run.model.version, int(run.repeat[i])

    def participation(self, client: int) -> Key | None:
        return self._latest.get(client)

    def finish(self, sent_in: int, more_notes: Sequence[str] = ()) -> History:
        if self._history is not None:
            return self._history
        notes, closed, count = self._simulation.server.notes, self.decisions.closed, self.scenario.rounds.count
        if not self.stepping.begun:
            self.to_question()
        if not self.stepping.over:
            self.stepping.stop(at_round=self._last_round(sent_in))
            closed = self.decisions.closed
            played = 0 if closed is None else closed.number
            if played < count != OPEN_END and not notes:
                notes.append(f"the run was finished from outside after round {played} of {count}")
        notes += [NOTE, *more_notes]
        history = self._simulation.ended()
        self._history = history if self._recording is None else self._recording.finish(history)
        return self._history

    def _last_round(self, sent_in: int) -> int | None:
        """Return the round that becomes the last one; None if that is the one before the present one."""
        asked, closed = self.stepping.asked, self.decisions.closed
        if asked is Asked.REPORT and closed is not None:
            return closed.number
        begun = asked is Asked.PLACES and sent_in == self.decisions.number
        return self.decisions.number if begun else None

    def fail(self, error: BaseException) -> None:
        if self._recording is not None and self._history is None:
            self._recording.fail(error)

    @cached_property
    def _features(self) -> FloatArray:
        """What clients declare of themselves, shape (K, 4)."""
        return self.context.clients.features


def _no_clients() -> Cohort:
    return Cohort(np.zeros(0, dtype=np.int64))


class _Asked:
    """A selector that gets reports from the round on in which it is first asked.

    It may never be asked. Before its first view a method knows no clients, and many have no place for such reports.
    """

    def __init__(self, selector: SelectorPort) -> None:
        self._selector, self._asked = selector, False
        self.port = replace(selector, select=self._select, observe=self._observe)

    def _select(self, view: RoundView, rng: np.random.Generator) -> Cohort:
        self._asked = True
        return self._selector.select(view, rng)

    def _observe(self, reports: Reports) -> None:
        if self._asked:
            self._selector.observe(reports)
