"""The server process: round after round, each followed by what shall be known of its model.

A crash is an interrupt of that process. It ends the round that it comes in, whose number is not used again.
"""

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any

import numpy as np
from simpy import Environment, Event, Interrupt

from fedsim.errors import ScenarioError
from fedsim.history.recorder import Recorder
from fedsim.learning import Evaluation, Model
from fedsim.rounds.audit.audit import Audit
from fedsim.rounds.clients.dispatch import Dispatcher
from fedsim.rounds.hierarchy.cloud import Cloud
from fedsim.rounds.server.context import ServerContext
from fedsim.rounds.server.coordinator import Coordinator
from fedsim.rounds.server.round_log import RoundLog
from fedsim.rounds.server.selection import Selection


@dataclass(frozen=True, kw_only=True)
class StoppingCriteria:
    """When a run is over: after so many rounds, or earlier at a simulated time or an accuracy.

    Attributes
    ----------
    count : number of rounds
    until_s : no round starts at or after this simulated second; None for no limit
    target_accuracy : the run ends with the first evaluation that reaches it; None for no target
    evaluate_every : rounds between evaluations; the last round is always evaluated
    """

    count: int
    until_s: float | None = None
    target_accuracy: float | None = None
    evaluate_every: int = 1


@dataclass(frozen=True)
class Progress:
    """How far a run is: shown to whoever watches, after every round."""

    round: int
    count: int
    time_s: float
    evaluation: Evaluation | None


class Server:
    """Runs the rounds of one simulation.

    Parameters
    ----------
    env : Environment
    context : ServerContext
    ending : Ending
    recorder : Recorder
    on_round : called after every round, if given
    audit : whether to check that bits, time and energy are conserved
    """

    def __init__(
        self,
        env: Environment,
        context: ServerContext,
        ending: StoppingCriteria,
        recorder: Recorder,
        on_round: Callable[[Progress], None] | None = None,
        *,
        audit: bool = False,
    ) -> None:
        self.env, self.context, self.ending, self.recorder = env, context, ending, recorder
        self._on_round = on_round
        dispatcher = Dispatcher(env, context.clients)
        books = Audit(context.learner.samples.size, dispatcher.medium, context.clients.batteries) if audit else None
        recorder.accounts = None if books is None else books.accounts
        self._top: Coordinator | Cloud
        if context.hierarchy is None:
            choice = Selection(env, context, context.selector)
            self._top = Coordinator(env, context, dispatcher, choice, RoundLog(recorder, context, books))
        else:
            self._top = Cloud(env, context, context.hierarchy, dispatcher, recorder, books)
        self._evaluated = 0

    def run(self) -> None:
        """Serve, and let the clock run until that is over.

        Raises
        ------
        ScenarioError
            If it never will be, as nothing is going to happen any more.
        """
        end_of_time = self.env.timeout(np.inf)
        end_of_time.callbacks = [self._refuse_to_wait]
        self.env.run(until=self.env.process(self.serve()))

    def _refuse_to_wait(self, _: Event) -> None:
        raise ScenarioError(
            "rounds: nobody is there and free, and nobody ever will be: who is at work will never be done, since its "
            "link carries nothing; allowed: rounds.late that cuts off late clients"
        )

    def serve(self) -> Generator[Event, Any, None]:
        """Run round after round until the ending is reached."""
        restart, process = self.context.server_restart, self.env.active_process
        if restart is not None and process is not None:
            self.env.process(restart.strike(self.env, process, self.context.streams))
        opens_s = self._top.opens_s(1)
        if self._past(opens_s):
            raise ScenarioError(
                "devices: no round can start; the first client is available, and charged enough, after "
                f"{opens_s} s; allowed: availability and energy that let one take part before rounds.until_s"
            )
        for number in range(1, self.ending.count + 1):
            if not (yield from self._run(number, opens_s)):
                self._evaluate(self._top.model, number - 1, last=True)
                break
            last = number == self.ending.count
            if not last:
                opens_s = self._top.opens_s(number + 1)
                last = self._past(opens_s)
            evaluation = self._evaluate(self._top.model, number, last=last)
            if self._on_round is not None:
                self._on_round(Progress(number, self.ending.count, self.env.now, evaluation))
            if last or self._reached(evaluation):
                break
        yield from self._top.end()

    def _run(self, number: int, opens_s: float) -> Generator[Event, Any, bool]:
        """Run a round, up to its end or to a crash and the restart; return whether it has begun.

        If the server crashes before that, it begins after the restart, unless it is too late or nobody comes then.
        """
        while not self._past(opens_s):
            try:
                while self.env.now < opens_s:
                    yield self.env.timeout(max(opens_s - self.env.now, float(np.spacing(self.env.now))))
                yield from self._top.round(number, opens_s)
                return True
            except Interrupt:
                begun = yield from self._top.crash()
                if self.context.server_restart is not None:
                    yield self.env.timeout(self.context.server_restart.down_s)
                if begun:
                    return True
                opens_s = self._top.opens_s(number)
        return False

    def _evaluate(self, model: Model, number: int, *, last: bool) -> Evaluation | None:
        if number == self._evaluated or (not last and number % self.ending.evaluate_every):
            return None
        self._evaluated = number
        evaluation = self.context.learner.evaluate(model)
        if evaluation is not None:
            self.recorder.add_evaluation(
                round=number,
                time_s=self.env.now,
                model_version=model.version,
                accuracy=evaluation.accuracy,
                loss=evaluation.loss,
            )
        return evaluation

    def _past(self, time_s: float) -> bool:
        return time_s == np.inf or (self.ending.until_s is not None and time_s >= self.ending.until_s)

    def _reached(self, evaluation: Evaluation | None) -> bool:
        target = self.ending.target_accuracy
        return target is not None and evaluation is not None and evaluation.accuracy >= target
