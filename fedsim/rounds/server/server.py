"""The server process: round after round, each followed by an evaluation of its model where one is due.

A crash is an interrupt of that process. It ends the present round, whose number is not used again.
"""

import gc
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray
from simpy import Environment, Event, Interrupt, Process

from fedsim.answers import attributing, unchecked
from fedsim.capabilities import TIME_LIMIT
from fedsim.clock import Waiting, has_come, rest_of_instant, run_until, wait_until
from fedsim.code_digest import is_builtin
from fedsim.errors import FedsimError, PartError, ScenarioError
from fedsim.history.recorder import Recorder
from fedsim.inputs.bounds import LATEST_S
from fedsim.learning import Evaluation, Model, PendingEvaluation
from fedsim.rounds.effects.contract import Effects, Never
from fedsim.rounds.effects.faults.settings import SERVER_CRASH
from fedsim.rounds.server.context import ServerContext
from fedsim.rounds.server.evaluations import EvaluationPlan, Evaluations

FINISHED: Final = "the run is finished"
"""Cause of the interrupt that ends a run before its last round: from outside, or since no update comes any more."""
MOST_RESTARTS: Final = 100_000
"""After this number of crashes of the server in a row without a round, none is expected to start any more."""


@dataclass(frozen=True, kw_only=True)
class StoppingCriteria:
    """When a run is over: after a number of rounds, or earlier at a simulated time or an accuracy.

    No round starts at or after ``until_s``. ``reached`` is another measure of an evaluation that is good enough.
    """

    count: int
    until_s: float | None = None
    target_accuracy: float | None = None
    reached: Callable[[Evaluation], bool] | None = None

    @property
    def has_target(self) -> bool:
        return self.target_accuracy is not None or self.reached is not None


@dataclass(frozen=True)
class Progress:
    """How far a run is, after a round."""

    round: int
    count: int
    time_s: float
    pending: PendingEvaluation | None
    weights: Callable[[], Mapping[str, NDArray[Any]] | None]

    @property
    def evaluation(self) -> Evaluation | None:
        """The evaluation, once it is there: reading it waits. None if this round is not followed by one."""
        return None if self.pending is None else self.pending.result()


@contextmanager
def _few_searches_for_garbage() -> Iterator[None]:
    """Have Python search for garbage only after 10,000 new objects.

    The transfers and waits of a cohort live for a round and are no garbage. After 700 new objects, Python's own number,
    the searches among them take a sixth of a round of 1,000 clients on a shared medium.
    """
    new, *older = gc.get_threshold()
    gc.set_threshold(max(new, 10_000) if new else new, *older)
    try:
        yield
    finally:
        gc.set_threshold(new, *older)


class RoundRunner(Protocol):
    """Runs the rounds of one simulation: the server of a flat federation, or the cloud of a hierarchical one."""

    model: Model
    may_wait_on: bool
    """Whether a round can wait on for updates after the run's last second though none comes."""

    def nothing_comes(self) -> str:
        """Return why no update can be expected at the end of the run; empty while one can."""
        ...

    def stop_waiting(self) -> bool:
        """End the round with what has arrived; return whether a round has a cohort or clients in flight to end."""
        ...

    def next_start_s(self, number: int) -> float:
        """Return when a round can start: now, or when the first client is available; inf for never."""
        ...

    def run_round(self, number: int, start_s: float) -> Waiting:
        """Run a round that starts now."""
        ...

    def abort_round(self) -> Generator[Event, Any, bool]:
        """Lose clients in flight and updates that wait, as the server crashes; return whether that ends a round."""
        ...

    def shutdown(self) -> Waiting:
        """Lose clients in flight and updates that wait, as the run is over."""
        ...

    def waits_in_vain(self) -> FedsimError | None:
        """Return the error about a policy that waits although no client is in flight; None if one is."""
        ...


class Server:
    """The server process of one simulation."""

    def __init__(
        self,
        env: Environment,
        context: ServerContext,
        runner: RoundRunner,
        stopping: StoppingCriteria,
        recorder: Recorder,
        plan: EvaluationPlan,
        on_round: Callable[[Progress], None] | None = None,
    ) -> None:
        self.env, self.context, self.stopping, self.recorder = env, context, stopping, recorder
        self._runner, self._on_round = runner, on_round
        self._evaluations, self._evaluates_all = Evaluations(env, context.learner, recorder, plan), plan.every == 1
        self._number, self._crashed_s = 0, -np.inf
        self.notes: list[str] = []
        self._evaluated = False

    @property
    def model(self) -> Model:
        return self._runner.model

    def evaluate(self) -> None:
        """Begin an evaluation of the newest model now, before the present round has a cohort."""
        self._evaluations.begin(self.model, self._number - 1)

    def run(self) -> None:
        process = self.begin()
        with self._placing(), _few_searches_for_garbage():
            run_until(self.env, process)
        self.end(process)

    def begin(self) -> Process:
        """Return the process that runs rounds, which begins with the next event."""
        end_of_time = self.env.timeout(np.inf)
        end_of_time.callbacks = [self._refuse_to_wait]
        too_late = self.env.timeout(LATEST_S)
        too_late.callbacks = [self._refuse_to_go_on]
        if self.stopping.until_s is not None and not self._evaluates_all:
            budget = self.env.timeout(self.stopping.until_s)
            budget.callbacks = [self._evaluate_at_budget]
        policy = self.context.rules.policy
        own = not is_builtin(type(unchecked(policy))) and policy.traits.concurrency is None
        if own and self.stopping.until_s is not None and TIME_LIMIT not in policy.provides:
            self.env.process(self._refuse_to_outlast(self.stopping.until_s))
        process = self.env.process(self.serve())
        if self.stopping.until_s is not None and self._runner.may_wait_on:
            self.env.process(self._end_in_vain(process, self.stopping.until_s))
        return process

    def go_on(self, process: Process, paused: Callable[[], bool]) -> None:
        """Run the clock event by event, until a pause or the end of the run."""
        with self._placing():
            while not process.processed and not paused():
                self.env.step()

    def end_for_nobody(self, process: Process) -> None:
        """End a run whose present round has no cohort, since no client can ever be selected again."""
        self._note_end(self._number - 1, self._why_nobody())
        process.interrupt(FINISHED)

    def end(self, process: Process) -> None:
        """Refuse a run that a part has stopped."""
        if process.is_alive:
            stopped = PartError("a part of the user's own has stopped the clock", "allowed: nothing that ends a run")
            stopped.place(self._number, self.env.now)
            raise stopped

    @contextmanager
    def _placing(self) -> Iterator[None]:
        """Add the round and the simulated second to errors about a part of the user's own."""
        try:
            with attributing():
                yield
        except PartError as error:
            error.place(self._number, self._evaluations.time_of(error, self.env.now))
            raise

    def _evaluate_at_budget(self, _: Event) -> None:
        self._evaluations.at_budget(self.model, self._number - 1)

    def _refuse_to_wait(self, _: Event) -> None:
        if (waiting := self._runner.waits_in_vain()) is not None:
            raise waiting
        raise ScenarioError(
            "rounds: no client is available and idle, and none ever will be: the clients in flight never finish, since "
            "their links carry nothing; allowed: rounds.late that cancels late clients"
        )

    def _refuse_to_outlast(self, until_s: float) -> Waiting:
        """Refuse a policy without a time limit that waits, with no client in flight, at twice the end of the run."""
        yield from wait_until(self.env, 2.0 * until_s)
        yield from rest_of_instant(self.env)
        if (waiting := self._runner.waits_in_vain()) is not None:
            raise waiting

    def _end_in_vain(self, process: Process, until_s: float) -> Waiting:
        """End the run at its last second, or later, as soon as its round waits for updates that do not come."""
        yield from wait_until(self.env, until_s)
        yield from rest_of_instant(self.env)
        give_up_after_s = self.context.rules.policy.traits.give_up_after_s
        while not (why := self._runner.nothing_comes()):
            if give_up_after_s == np.inf or self.env.peek() >= LATEST_S:
                return  # no client is given up, so that it stays as it is
            yield self.env.timeout(give_up_after_s)
        ends = self._runner.stop_waiting()
        self._note_end(self._number if ends else self._number - 1, f"rounds.until_s has come, and {why}")
        if not ends:
            process.interrupt(FINISHED)

    def _refuse_to_go_on(self, _: Event) -> None:
        if self.env.peek() == np.inf:
            return  # nothing happens before the end of time, which has its own reason
        raise ScenarioError(
            f"rounds: in round {self._number} the simulated clock has come to {LATEST_S:g} s, and beyond it a clock of "
            "64 bits is too coarse; allowed: shorter times, faster links and devices, a policy whose waits do not grow "
            "without a delivery (longest_s, growth), or rounds.until_s"
        )

    def serve(self) -> Generator[Event, Any, None]:
        restart, process = self.context.rules.server_restart, self.env.active_process
        if restart is not None and process is not None:
            self.env.process(restart.interrupt(self.env, process, self.context.streams))
        start_s = self._runner.next_start_s(1)
        if self._past(start_s):
            raise self._refusal_to_start(start_s)
        self._evaluations.at_start(self._runner.model)
        for number in range(1, self.stopping.count + 1):
            self._number = number
            if not (yield from self._run(number, start_s)):
                self._evaluations.after_round(self._runner.model, number - 1, last=True)
                break
            last = number == self.stopping.count
            if not last:
                start_s = self._runner.next_start_s(number + 1)
                last = self._past(start_s)
                if start_s == np.inf:
                    self._note_end(number, self._why_nobody())
            evaluation = self._evaluations.after_round(self._runner.model, number, last=last)
            self._evaluated |= evaluation is not None
            if self._on_round is not None:
                weights = partial(self.context.learner.export, self._runner.model)
                self._on_round(Progress(number, self.stopping.count, self.env.now, evaluation, weights))
            if last or self._reached(evaluation):
                break
        self._evaluations.at_end(self._runner.model)
        if self.stopping.has_target and not self._evaluated:
            self.notes.append("rounds.target: no round was evaluated, so that no target could end the run")
        yield from self._runner.shutdown()

    def _run(self, number: int, start_s: float) -> Generator[Event, Any, bool]:
        """Run a round, up to its end or to a crash and the restart; return whether it has started.

        If the server crashes before that, the round starts after the restart, unless the run is over by then.
        """
        restarts = 0
        while not self._past(start_s):
            try:
                while self.env.now < start_s:
                    yield self.env.timeout(max(start_s - self.env.now, float(np.spacing(self.env.now))))
                yield from self._runner.run_round(number, start_s)
                return True
            except Interrupt as interrupt:
                if interrupt.cause is FINISHED:
                    return False
                if interrupt.cause is not SERVER_CRASH:
                    raise PartError("a part of the user's own raised Interrupt", "allowed: errors of its own") from None
                self._crashed_s = self.env.now
                begun = yield from self._runner.abort_round()
                if self.context.rules.server_restart is not None:
                    yield self.env.timeout(self.context.rules.server_restart.down_s)
                if begun:
                    return True
                restarts += 1
                if restarts >= MOST_RESTARTS:
                    raise ScenarioError(
                        f"rounds.faults.server_restart: the server crashed {restarts} times in a row, up to "
                        f"{self.env.now:.6g} s, before round {number} could start; allowed: clients that are available "
                        "between two crashes, or rounds.until_s"
                    ) from None
                start_s = self._runner.next_start_s(number)
        if start_s == np.inf:
            self._note_end(number - 1, self._why_nobody())
        return False

    def _note_end(self, number: int, why: str) -> None:
        """Note why there is no further round after one of this number."""
        crash = ""
        if self._crashed_s > -np.inf:
            crash = f"the server crashed at {self._crashed_s:.6g} s, and since then "
        self.notes.append(
            f"the run ended after round {number} of {self.stopping.count}, at {self.env.now:.6g} s: {crash}{why}"
        )

    def _why_nobody(self) -> str:
        """Return why no client will be selected from now on."""
        reasons = never_of(self.context.clients.effects, self.env.now)
        return reasons[-1].why if reasons else "no client will ever be available again"

    def _refusal_to_start(self, start_s: float) -> ScenarioError:
        """Return the error about a run whose first client could be selected too late."""
        reasons = never_of(self.context.clients.effects, self.env.now) if start_s == np.inf else []
        if reasons:
            field, why, allowed = reasons[-1]
            return ScenarioError(f"{field}: no round can start; {why}; allowed: {allowed}")
        return ScenarioError(
            f"devices: no round can start; the first client can be selected after {start_s} s; allowed: availability "
            "and energy that let one take part before rounds.until_s"
        )

    def _past(self, time_s: float) -> bool:
        until_s = self.stopping.until_s
        return time_s == np.inf or (until_s is not None and has_come(until_s, time_s, self._number))

    def _reached(self, evaluation: PendingEvaluation | None) -> bool:
        if evaluation is None or not self.stopping.has_target:
            return False
        target, reached = self.stopping.target_accuracy, self.stopping.reached
        found = evaluation.result()
        return (target is not None and found.accuracy >= target) or (reached is not None and reached(found))


def never_of(effects: Effects, time_s: float) -> list[Never]:
    """Return why no client can ever be selected again, by the effects that alone prevent it, in their order."""
    found = (effect.never(time_s) for effect in effects.having("never"))
    return [never for never in found if never is not None]
