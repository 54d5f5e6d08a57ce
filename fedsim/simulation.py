"""A scenario that runs to its end, and its history."""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Final

from fedsim.answers import ShortTraceback, attributing
from fedsim.capabilities import FLOPS
from fedsim.devices.contracts import COMPUTE_TIME
from fedsim.errors import DistrustError, PartError, RunError, ScenarioError
from fedsim.history import History, Recorder
from fedsim.inputs.tables import reading
from fedsim.lazy import without_collections
from fedsim.learning import ExecutorChoice, ExecutorUsed, Keeping, MakeExecutor, Precision
from fedsim.learning.generators import generators_of_run
from fedsim.learning.models.settings import ModelPart
from fedsim.learning.models.trained import TrainedModel
from fedsim.learning.store.choice import StoreChoice
from fedsim.rounds import EvaluationPlan, Progress, ServerContext, StoppingCriteria
from fedsim.rounds.clients.description import described
from fedsim.rounds.effects.privacy.budget import accountant_of
from fedsim.rounds.effects.selector.questions import why_no_norms
from fedsim.rounds.server.outside import Decisions
from fedsim.scenario import Scenario
from fedsim.scenario.building import build_context, build_hierarchy, build_server
from fedsim.scenario.disclosure import remarks_of
from fedsim.scenario.doubts import doubts_of
from fedsim.scenario.noise import drowned
from fedsim.scenario.presence import with_presence
from fedsim.scenario.reach import too_late
from fedsim.watchdog import watched

_LOG: Final = logging.getLogger("fedsim")
_SAID: Final[set[str]] = set()
"""Sentences on scenarios that this process has logged."""


@dataclass(frozen=True)
class Outside:
    """What of a run comes from outside."""

    decisions: Decisions
    adapt: Callable[[ServerContext], ServerContext]
    evaluations: EvaluationPlan | None = None


class Simulation:
    """A scenario that runs: its processes, and its history so far."""

    def __init__(
        self,
        scenario: Scenario,
        *,
        data_dir: str | Path | None = None,
        store: StoreChoice = None,
        keeping: Keeping | str | None = None,
        on_round: Callable[[Progress], None] | None = None,
        executor: str | MakeExecutor | None = None,
        device: str | None = None,
        precision: Precision = "float32",
        fast: bool = False,
        recorder: Recorder | None = None,
        outside: Outside | None = None,
    ) -> None:
        self.scenario = scenario
        self.recorder = recorder or Recorder(scenario.name)
        stopping = StoppingCriteria(
            count=scenario.rounds.count,
            until_s=scenario.rounds.until_s,
            target_accuracy=scenario.rounds.target_accuracy,
            reached=None if scenario.rounds.target is None else scenario.rounds.target.reached,
        )
        results = scenario.results
        wanted, target = results.target_accuracy, scenario.rounds.target
        plan = EvaluationPlan(
            every=results.evaluate_every,
            start=results.evaluate_start,
            of_clients=results.evaluate_clients,
            goals=(lambda found: found.accuracy >= wanted, *([] if target is None else [target.reached])),
        )
        if outside is not None and outside.evaluations is not None:
            plan = outside.evaluations
        chosen = ExecutorChoice.of(executor, device, precision, fast)
        try:
            with without_collections(), watched(lambda: None), attributing(), reading() as read:
                scenario = with_presence(scenario)
                self.context = build_context(scenario, data_dir, store, chosen, keeping)
                if outside is not None:
                    self.context = outside.adapt(self.context)
                selector = self.context.selector
                why = why_no_norms(
                    self.context.learner,
                    private=scenario.privacy is not None,
                    asynchronous=self.context.rules.policy.traits.concurrency is not None,
                )
                if selector.asks_norms and why:
                    raise ScenarioError(f"selector: {selector.name} asks for norms of updates, not to be had {why}")
                of = self.context.clients
                flops = (
                    self.context.learner.flops_per_sample
                    if FLOPS in COMPUTE_TIME.checked(scenario.devices.compute).requires
                    else None
                )
                self.server = build_server(
                    self.context,
                    stopping,
                    self.recorder,
                    build_hierarchy(scenario, self.context),
                    on_round,
                    plan,
                    decisions=None if outside is None else outside.decisions,
                )
                self.recorder.clients = described(of.links, of.compute, self.context.learner, of.shows(), flops)
        except PartError as error:
            error.place(0, 0.0)
            raise
        self._read = tuple(read.notes)

    @property
    def remarks(self) -> tuple[str, ...]:
        """Sentences on what the scenario leaves without privacy, on the data, and why the run ended early."""
        refused = None if self.context.rules.refused is None else self.context.rules.refused.note()
        unscaled = self.context.selector.remarks if self.scenario.rounds.weights.scaled else ()
        return (*self.foreseen, *self.server.notes, *unscaled, *([refused] if refused else ()))

    @cached_property
    def foreseen(self) -> tuple[str, ...]:
        """Sentences that are known before the run: on the scenario, its data, and rows of tables that are not used."""
        learner = self.context.learner
        late = too_late(self.scenario, self.context.clients)
        noisy = drowned(self.scenario, None if learner.architecture is None else learner.model_bits)
        return (*late, *self.of_scenario, *noisy, *learner.notes, *self._read)

    @cached_property
    def of_scenario(self) -> tuple[str, ...]:
        """Those that are due to the scenario alone, and hold for all runs of a study."""
        return (*doubts_of(self.scenario), *remarks_of(self.scenario))

    @property
    def executor_used(self) -> ExecutorUsed | None:
        """What computes trainings and evaluations; None in a run about timing only."""
        return self.context.learner.executor_used

    def run(self) -> History:
        """Run to the end and return what happened."""
        try:
            with watched(lambda: float(self.server.env.now)), generators_of_run(self.scenario.seed):
                self.server.run()
            trained = self.trained()
            history = self.ended()
        finally:
            self.context.learner.flush()
        return history if trained is None else replace(history, find_model=_Found(trained))

    def trained(self) -> TrainedModel | None:
        """Return the newest model, training what is needed; None in a run about timing only."""
        learner = self.context.learner
        arrays = learner.export(self.server.model)
        if learner.architecture is None or arrays is None:
            return None
        return TrainedModel(learner.architecture, arrays)

    def ended(self) -> History:
        """Return the history of a run that is over, with its remarks."""
        accountant = accountant_of(self.context.effects)
        budget = None if accountant is None else accountant.total
        return replace(
            self.history(), remarks=self.remarks, budget=budget, **asked_of(self.scenario, self.scenario.digest())
        )

    def history(self) -> History:
        """Return what has happened so far."""
        return self.recorder.history()


def asked_of(scenario: Scenario, digest: str) -> dict[str, Any]:
    """Return what a history knows of its scenario, by field."""
    return {
        "find_scenario": partial(Scenario.of, scenario),
        "digest": digest,
        "seed": scenario.seed,
        "until_s": scenario.rounds.until_s,
        "target_accuracy": scenario.results.target_accuracy,
        "target": None if scenario.rounds.target is None else scenario.rounds.target.goal,
        "smoothing": scenario.results.smoothing,
    }


@dataclass(frozen=True)
class _Found:
    """The final model of a simulation, in memory."""

    trained: TrainedModel

    def __call__(self, model: ModelPart | str | None, after_round: int | None) -> TrainedModel:
        """Return it; refuse other models."""
        if model is not None or after_round is not None:
            raise RunError("model: a history in memory has the final model only, whose settings are known")
        return self.trained


@dataclass(frozen=True)
class EvaluatingAll:
    """The evaluations of all models of a run, by a repetition of it."""

    scenario: Scenario
    make: Callable[[Scenario], Simulation]

    def __call__(self, history: History) -> History:
        """Repeat the rounds of a history, with an evaluation after each; no evaluation ends them."""
        every = {
            "results.evaluate_every": 1,
            "results.evaluate_start": True,
            "results.evaluate_clients": "never",
            "rounds.count": history.rounds.num_rows,
            "rounds.target_accuracy": None,
            "rounds.target": None,
        }
        return self.make(self.scenario.replace(every)).run()


def simulate(
    scenario: Scenario | str | Path | Mapping[str, Any],
    *,
    data_dir: str | Path | None = None,
    store: StoreChoice = None,
    keeping: Keeping | str | None = None,
    on_round: Callable[[Progress], None] | None = None,
    executor: str | MakeExecutor | None = None,
    device: str | None = None,
    precision: Precision = "float32",
    fast: bool = False,
) -> History:
    """Run a scenario and return its history; nothing is written. See `Simulation` for the arguments.

    What the command line says of a run's end is said here too, by the logger ``fedsim``; `History.notes` holds it. What
    is due to the scenario alone is logged once in a process.

    Parameters
    ----------
    scenario : what to run: a scenario, the path of its TOML file, or its tables
    data_dir : folder of real data sets; ``FEDSIM_DATA`` or the user's cache by default
    store : keeps results of training, so that runs that share one compute no training twice: a `Store`, the folder of
        one, or False for none; ``FEDSIM_STORE`` or a folder in the user's cache by default
    keeping : which models stay in the store once a newer one is there: ``"all"`` (the default), ``"last"`` or
        ``"every 10"``
    on_round : called after every round with a `Progress`
    executor : what computes trainings and evaluations: a kind of `fedsim.learning.EXECUTORS`, ``"module:Class"``, or
        what makes one; ``FEDSIM_EXECUTOR`` or ``"auto"`` by default. The history does not depend on it beyond rounding.
    device : where the executor computes, in torch's words; ``FEDSIM_DEVICE`` by default, else the CPU, or with
        the executor ``"auto"`` a GPU that saves more time than its start takes
    precision : of the arithmetic inside layers, ``"float32"`` or ``"bfloat16"``
    fast : whether bits may differ from run to run where that saves time: kernels of a GPU that add in any order,
        dropout on several threads; the store shares such results with no other run

    Returns
    -------
    History

    Raises
    ------
    FedsimError
        If data, a store or an executor that are named cannot be used.
    PartError
        If a part of the user's own fails, or returns what its contract does not allow.

    Examples
    --------
    >>> scenario = Scenario.load("scenarios/quickstart.toml").replace({"rounds.count": 2})
    >>> history = simulate(scenario, store=False)
    >>> history.participations.num_rows, history.evaluations.num_rows
    (10, 3)
    >>> history.time_to_accuracy(0.99) is None
    True
    """
    make = partial(
        Simulation,
        data_dir=data_dir,
        store=store,
        keeping=keeping,
        executor=executor,
        device=device,
        precision=precision,
        fast=fast,
    )
    chosen = Scenario.of(scenario)
    with ShortTraceback():
        simulation = make(chosen, on_round=on_round)
        for note in simulation.foreseen:
            if note not in simulation.of_scenario or note not in _SAID:
                _LOG.warning("fedsim: %s", note)
        _SAID.update(simulation.of_scenario)
        try:
            history = simulation.run()
        except DistrustError as error:
            simulation = make(chosen, on_round=on_round)
            history = simulation.run()
            history = replace(history, remarks=(*history.remarks, str(error)))
    if history.find_model is not None:
        history = replace(history, find_evaluations=EvaluatingAll(chosen, make))
    for note in history.notes[len(simulation.foreseen) :]:
        _LOG.warning("fedsim: %s", note)
    return history
