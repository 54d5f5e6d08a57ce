"""Models between two evaluations, until it is known which of them may be the first that reaches a goal."""

from collections import deque
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from fedsim.learning import Evaluation, Model

Goal = Callable[[Evaluation], bool]
"""Whether an evaluation is good enough."""

MOST_ROUNDS: Final = 32
"""Most rounds from one evaluation to the next; the models of more would take too much memory."""


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
        """Note that a model is evaluated."""
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
