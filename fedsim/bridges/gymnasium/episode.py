"""One run of a scenario, played from selection to selection."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from fedsim.bridges.gymnasium.rewards import Step
from fedsim.bridges.testbed import RoundResult
from fedsim.bridges.testbed.columns import round_of
from fedsim.bridges.testbed.stepping import Stepping
from fedsim.history import History
from fedsim.learning import Evaluation
from fedsim.rounds import Progress
from fedsim.rounds.effects.privacy.budget import accountant_of
from fedsim.rounds.server.outside import Asked, Decisions
from fedsim.scenario import Scenario
from fedsim.selectors import Cohort, RoundView
from fedsim.simulation import Outside, Simulation


class Episode:
    """A run whose cohorts come from outside; what is learned, is learned by the scenario's learner."""

    def __init__(self, scenario: Scenario, computing: Mapping[str, Any]) -> None:
        self.scenario, self._decisions = scenario, Decisions()
        self._simulation = Simulation(
            scenario, on_round=self._after_round, outside=Outside(self._decisions, lambda context: context), **computing
        )
        self._stepping = Stepping(self._simulation.server, self._decisions)
        self._evaluation = self._first_evaluation()
        self._leakage, self._seen_s = 0.0, 0.0
        self._heard = np.zeros(scenario.crowd.clients, dtype=bool)
        self.view: RoundView | None = None
        self.number = 0
        self._advance()

    @property
    def now_s(self) -> float:
        """Present simulated time; of a run that is over, that of its end."""
        return self._stepping.now_s

    @property
    def target_reached(self) -> bool:
        """Whether the newest evaluation is as good as the scenario's target."""
        rounds, evaluation = self.scenario.rounds, self._evaluation
        if evaluation is None or self.number == 0:
            return False
        reached = rounds.target is not None and rounds.target.reached(evaluation)
        return reached or (rounds.target_accuracy is not None and evaluation.accuracy >= rounds.target_accuracy)

    @property
    def accuracy(self) -> float:
        """Accuracy of the newest evaluation; NaN where nothing is learned."""
        return math.nan if self._evaluation is None else self._evaluation.accuracy

    @property
    def leakage(self) -> float:
        """Largest epsilon that a client has spent; 0 without privacy."""
        accountant = accountant_of(self._simulation.context.effects)
        return 0.0 if accountant is None else float(np.max(accountant.spent, initial=0.0))

    def play(self, cohort: Cohort) -> Step:
        accuracy, before = self.accuracy, self._decisions.closed
        self._decisions.answer(cohort)
        self._advance()
        closed = self._decisions.closed
        played = None
        if closed is not None and closed is not before:
            played = round_of(closed, self._decisions.take_ended())
        return self._step(played, accuracy, int(cohort.client.size))

    def stand(self) -> Step:
        """Return the facts of a step in which nothing is done and no time passes."""
        return self._step(None, self.accuracy, 0)

    def history(self) -> History:
        return self._simulation.ended() if self._stepping.over else self._simulation.history()

    def close(self) -> None:
        self._simulation.context.learner.flush()

    def _step(self, played: RoundResult | None, accuracy: float, selected: int) -> Step:
        gain = self.accuracy - accuracy
        leakage, seen_s = self._leakage, self._seen_s
        self._leakage, self._seen_s = self.leakage, self.now_s
        delivered = np.zeros(0, dtype=np.int64) if played is None else played.client[played.delivered]
        first = int(np.count_nonzero(~self._heard[delivered]))
        self._heard[delivered] = True
        return Step(
            played=played,
            seconds=self.now_s - seen_s,
            accuracy=self.accuracy,
            accuracy_gain=0.0 if math.isnan(gain) else gain,
            leakage=self._leakage,
            leakage_gain=self._leakage - leakage,
            selected=selected,
            delivered=delivered.size,
            first_deliveries=first,
            target_reached=self.view is None and self.target_reached,
        )

    def _advance(self) -> None:
        """Go on until a cohort is asked for, or the run is over."""
        while (asked := self._stepping.go_on()) is Asked.REPORT:
            self._decisions.answer(None)
        self.number = self._decisions.number
        self.view = None if asked is None else self._decisions.server.look()

    def _after_round(self, progress: Progress) -> None:
        if progress.evaluation is not None:
            self._evaluation = progress.evaluation

    def _first_evaluation(self) -> Evaluation | None:
        pending = self._simulation.context.learner.start_evaluation(self._simulation.server.model)
        return None if pending is None else pending.result()
