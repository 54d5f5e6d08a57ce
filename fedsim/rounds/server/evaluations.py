"""When the model of a run is evaluated, and what is recorded of that."""

import math
from array import array
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Literal, NamedTuple

from simpy import Environment

from fedsim.arrays import FloatArray
from fedsim.errors import PartError
from fedsim.history.outcomes import JudgedModel, JudgedSamples
from fedsim.history.recorder import Recorder
from fedsim.learning import Evaluation, Model, PendingEvaluation
from fedsim.learning.contracts import ModelNumbers

NEVER: Final = "never"
LAST: Final = "last"

OfClients = Literal["never", "last"] | int
Goal = Callable[[Evaluation], bool]
"""Whether an evaluation is good enough."""

MOST_ROUNDS: Final = 32
"""Most rounds from one evaluation to the next; the models of more would take too much memory."""


@dataclass(frozen=True, kw_only=True)
class EvaluationPlan:
    every: int = 1
    start: bool = True
    of_clients: OfClients = NEVER
    goals: tuple[Goal, ...] = ()


class Passed(NamedTuple):
    """A model that was not evaluated when its round was over."""

    model: Model
    round: int
    time_s: float


class Unevaluated:
    """The models since the last evaluation, and those before evaluations whose results are not known yet."""

    def __init__(self, goals: Sequence[Goal]) -> None:
        self._goals = list(goals)
        self._since: list[Passed] = []
        self._open: deque[tuple[Callable[[], bool], Callable[[], Evaluation], list[Passed]]] = deque()
        self._wanted: dict[int, Passed] = {}
        self._evaluations = 0
        self._newest = -1

    def add(self, model: Model, number: int, time_s: float) -> None:
        """Note a model that is not evaluated; a round without a new one goes on with that of the round before."""
        if self._goals and model.version != self._newest:
            self._since.append(Passed(model, number, time_s))
            self._newest = model.version

    def evaluated(self, model: Model, done: Callable[[], bool], result: Callable[[], Evaluation]) -> None:
        self._evaluations += 1
        if self._goals:
            self._open.append((done, result, [one for one in self._since if one.model.version != model.version]))
            self._since, self._newest = [], model.version
            while self._open and self._open[0][0]():
                self._close()

    def before_goals(self) -> list[Passed]:
        """Return the models before each evaluation that reached a goal first, if they are no more than evaluations."""
        while self._open:
            self._close()
        wanted = [self._wanted[version] for version in sorted(self._wanted)]
        return wanted if len(wanted) <= self._evaluations else []

    def _close(self) -> None:
        _, result, before = self._open.popleft()
        if not self._goals:
            return
        found = result()
        missed = [goal for goal in self._goals if not goal(found)]
        if len(missed) < len(self._goals):
            self._wanted |= {one.model.version: one for one in before}
        self._goals = missed


class Evaluations:
    def __init__(self, env: Environment, learner: ModelNumbers, recorder: Recorder, plan: EvaluationPlan) -> None:
        self.env, self._learner, self._recorder, self._plan = env, learner, recorder, plan
        self._round = self._round_of_clients = -1
        self._over_s = array("d")
        self._count = 0
        self._unevaluated = Unevaluated(plan.goals if plan.every <= MOST_ROUNDS else ())

    def at_start(self, model: Model) -> None:
        """Begin the evaluation of the first model, if one is wanted; to be called at time 0."""
        if self._plan.start:
            self.begin(model, 0)

    def after_round(self, model: Model, number: int, *, last: bool) -> PendingEvaluation | None:
        """Begin the evaluation that is due after a round; None if none is, or nothing is learned."""
        if number > len(self._over_s):
            self._over_s.append(self.env.now)
        if number in (0, self._round):
            return None
        if not last and number % self._plan.every:
            self._unevaluated.add(model, number, self.env.now)
            return None
        return self.begin(model, number)

    def at_budget(self, model: Model, number: int) -> None:
        """Begin the evaluation of the model that a budget of time ends with, if a round has left one without it."""
        if number > max(self._round, 0):
            self._round = number
            self._begin(model, number, self._over_s[number - 1])

    def at_end(self, model: Model) -> None:
        """Evaluate the models before a goal was reached, and the last one on each client's samples, if it is wanted."""
        if self._plan.of_clients != NEVER and self._round > self._round_of_clients:
            self._evaluate_clients(model)
        for one in self._unevaluated.before_goals():
            self._begin(one.model, one.round, one.time_s)

    def begin(self, model: Model, number: int) -> PendingEvaluation | None:
        """Begin an evaluation now, whether it is due or not."""
        self._round = number
        pending = self._begin(model, number, self.env.now)
        each = self._plan.of_clients
        if each not in (NEVER, LAST) and self._count % int(each) == 0:
            self._evaluate_clients(model)
        self._count += 1
        return pending

    def _begin(self, model: Model, number: int, time_s: float) -> PendingEvaluation | None:
        try:
            pending = self._learner.start_evaluation(model)
        except PartError as error:
            self._place(error, number, time_s)
            raise
        if pending is not None:
            found = partial(self._found, pending, number, time_s)
            self._unevaluated.evaluated(model, pending.done, found)
            self._recorder.add_row_later("evaluations", partial(self._row, found, number, time_s, model.version))
        return pending

    def time_of(self, error: PartError, now_s: float) -> float:
        """Return when the round was over to which the failed work belongs, perhaps an earlier one than the present."""
        number = error.round or 0
        return self._over_s[number - 1] if 0 < number <= len(self._over_s) else now_s

    def _place(self, error: PartError, number: int, time_s: float) -> None:
        """Let an error about a part of the user's own say after which round a model is evaluated; 0 for the first."""
        error.place(number, self.time_of(error, time_s))

    def _found(self, pending: PendingEvaluation, number: int, time_s: float) -> Evaluation:
        """Return an evaluation, waiting for it if need be."""
        try:
            return pending.result()
        except PartError as error:
            self._place(error, number, time_s)
            raise

    def _row(self, evaluation: Callable[[], Evaluation], number: int, time_s: float, version: int) -> Mapping[str, Any]:
        found = evaluation()
        metrics = {name: None if math.isnan(value) else value for name, value in _metrics(found.metrics).items()}
        return {
            "round": number,
            "time_s": time_s,
            "model_version": version,
            "accuracy": None if math.isnan(found.accuracy) else found.accuracy,
            "loss": found.loss if found.has_loss else None,
            "metrics": metrics or None,
            "model": JudgedModel.OWN if found.own else JudgedModel.SERVER,
            "judged_on": _samples(found),
        }

    def _evaluate_clients(self, model: Model) -> None:
        self._round_of_clients = self._round
        found = self._learner.evaluate_clients(model)
        if found is None:
            return
        metrics = _metrics({name: _nulls(values) for name, values in found.metrics.items()})
        rows = zip(found.samples.tolist(), _nulls(found.accuracy), _nulls(found.loss), strict=True)
        for client, (samples, accuracy, loss) in enumerate(rows):
            of_client = {name: values[client] for name, values in metrics.items()} if samples else {}
            self._recorder.add_row(
                "client_evaluations",
                round=self._round,
                client=client,
                samples=samples,
                accuracy=accuracy,
                loss=loss,
                metrics=of_client or None,
                model=JudgedModel.OWN if found.own else JudgedModel.SERVER,
                judged_on=JudgedSamples.HELD_OUT if found.held_out else JudgedSamples.PART_OF_TEST_SET,
            )


def _samples(found: Evaluation) -> JudgedSamples:
    if not found.own:
        return JudgedSamples.TEST_SET
    return JudgedSamples.HELD_OUT if found.held_out else JudgedSamples.PART_OF_TEST_SET


def _metrics(of_task: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the metrics of a task by name; none where it has accuracy alone, whose column is its own."""
    return of_task if any(name != "accuracy" for name in of_task) else {}


def _nulls(values: FloatArray) -> list[float | None]:
    return [None if math.isnan(value) else value for value in values.tolist()]
