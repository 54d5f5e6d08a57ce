"""The one place that wires a scenario into processes and runs it."""

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np
from simpy import Environment

from fedsim.answers import attributing, in_words
from fedsim.capabilities import FLOPS
from fedsim.devices import Availability, Batteries, Busy, Charge, EligibilityCriterion, EligibleClients, Working
from fedsim.devices.availability.on_off import OnOffProcess
from fedsim.devices.contracts import AVAILABILITY, AVAILABILITY_MODEL, COMPUTE_TIME, DROPOUT
from fedsim.devices.energy import ENERGY
from fedsim.errors import PartError, RunError, ScenarioError
from fedsim.heap import settled_heap
from fedsim.history import History, Recorder
from fedsim.learning import ExecutorChoice, ExecutorUsed, Keeping, Learner, MakeExecutor, Precision
from fedsim.learning.contracts import LEARNER
from fedsim.learning.models.settings import ModelPart
from fedsim.learning.models.trained import TrainedModel
from fedsim.learning.settings import LEARNER_SETTINGS
from fedsim.learning.store.choice import StoreChoice
from fedsim.network.contracts import PLACEMENT, build_links
from fedsim.privacy.side_information import SIDE_INFORMATION
from fedsim.rounds import (
    ClientContext,
    EvaluationPlan,
    ExpectedTimes,
    Faults,
    Hierarchy,
    Knowledge,
    Progress,
    Server,
    ServerContext,
    StoppingCriteria,
    Workload,
)
from fedsim.rounds.aggregation.weightings import WEIGHTING
from fedsim.rounds.audit.audit import Audit
from fedsim.rounds.audit.tables import TableAudit
from fedsim.rounds.clients.budget_left import BudgetLeft
from fedsim.rounds.clients.description import described
from fedsim.rounds.clients.dispatch import Dispatcher
from fedsim.rounds.hierarchy.cloud import Cloud
from fedsim.rounds.policies.contracts import checked_policy
from fedsim.rounds.policies.late import LATE_RULE
from fedsim.rounds.secure.exchange import SecureParts
from fedsim.rounds.server.at_request import columns_at_request
from fedsim.rounds.server.coordinator import Coordinator
from fedsim.rounds.server.decisions import Decisions
from fedsim.rounds.server.declared import DeclaredLabels, reserved_for_sizes
from fedsim.rounds.server.probing import why_no_norms
from fedsim.rounds.server.round_log import RoundLog
from fedsim.rounds.server.server import RoundRunner
from fedsim.scenario import Scenario
from fedsim.scenario.disclosure import remarks_of
from fedsim.scenario.private_parts import sampling_rate
from fedsim.selectors import SelectorPort
from fedsim.streams import Streams
from fedsim.watchdog import Standing, Watchdog

_LOG: Final = logging.getLogger("fedsim")


@dataclass(frozen=True)
class Outside:
    """What of a run comes from outside.

    Attributes
    ----------
    decisions : cohorts and reports
    adapt : returns what the server and its clients depend on, with the parts that take what is stated outside
    """

    decisions: Decisions
    adapt: Callable[[ServerContext], ServerContext]


class Simulation:
    """A scenario that runs: its processes, and its history so far.

    Parameters
    ----------
    scenario : Scenario
    data_dir : path, optional
        Directory of real data sets; ``FEDSIM_DATA`` or the user's cache by default.
    store : optional
        Keeps results of training under their digests; runs that share one compute no training twice. A `Store`, the
        folder of one, or False for none; ``FEDSIM_STORE`` or a folder in the user's cache by default.
    keeping : optional
        Which models stay in the store once a newer one is there: ``"all"`` (the default), ``"last"``, ``"every 10"``.
    on_round : optional
        Called after every round with a `Progress`.
    executor : optional
        What computes trainings and evaluations: a kind of `fedsim.learning.EXECUTORS`, ``"module:Class"``, or what
        makes one. ``FEDSIM_EXECUTOR`` or ``"auto"`` by default. The history does not depend on it beyond rounding.
    device : optional
        Where the executor computes, in torch's words.
    precision : optional
        Of the arithmetic inside layers, ``"float32"`` or ``"bfloat16"``.
    recorder : optional
        Takes the rows of the run; one with rows in temporary files by default.
    outside : optional
        Decisions that come from outside of the run; those of the selector by default.

    Attributes
    ----------
    server : of the run, which `run` runs to its end
    """

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
        plan = EvaluationPlan(
            every=results.evaluate_every, start=results.evaluate_start, of_clients=results.evaluate_clients
        )
        if outside is not None:
            plan = EvaluationPlan()  # of what is reported, all is recorded
        chosen = ExecutorChoice.of(executor, device, precision)
        try:
            with Watchdog(Standing), attributing():
                self.context = build_context(scenario, data_dir, store, chosen, keeping)
                if outside is not None:
                    self.context = outside.adapt(self.context)
                selector = self.context.selector
                if selector.asks_norms and (why := why_no_norms(self.context)):
                    raise ScenarioError(f"selector: {selector.name} asks for norms of updates, not to be had {why}")
                of = self.context.clients
                flops = (
                    self.context.learner.flops_per_sample
                    if FLOPS in COMPUTE_TIME.checked(scenario.devices.compute).requires
                    else None
                )
                self.recorder.clients = described(of.links, of.compute, self.context.learner, of.batteries, flops)
                self.server = build_server(
                    self.context,
                    stopping,
                    self.recorder,
                    build_hierarchy(scenario, self.context),
                    on_round,
                    plan,
                    audit=results.audit,
                    decisions=None if outside is None else outside.decisions,
                )
        except PartError as error:
            error.place(0, 0.0)
            raise

    @property
    def remarks(self) -> tuple[str, ...]:
        """Sentences on what the scenario leaves without privacy, and why the run ended before its last round."""
        return (*remarks_of(self.scenario), *self.server.notes)

    @property
    def executor_used(self) -> ExecutorUsed | None:
        """What computes trainings and evaluations; None in a run about timing only."""
        return self.context.learner.executor_used

    def run(self) -> History:
        """Run to the end and return what happened."""
        try:
            with Watchdog(self._standing), settled_heap():
                self.server.run()
            trained = self.trained()
            history = self.ended()
        finally:
            self.context.learner.flush()
        return history if trained is None else replace(history, find_model=_Found(trained))

    def _standing(self) -> Standing:
        """Return how far the run is, for a thread that looks at it."""
        env = self.server.env
        process = env.active_process
        return Standing(float(env.now), self.recorder.counts()["rounds"], "" if process is None else process.name)

    def trained(self) -> TrainedModel | None:
        """Return the newest model, training what is needed; None in a run about timing only."""
        learner = self.context.learner
        arrays = learner.export(self.server.model)
        if learner.architecture is None or arrays is None:
            return None
        return TrainedModel(learner.architecture, arrays)

    def ended(self) -> History:
        """Return the history of a run that is over, with its remarks."""
        accountant = self.context.clients.accountant
        budget = None if accountant is None else accountant.total
        return replace(self.history(), remarks=self.remarks, budget=budget)

    def history(self) -> History:
        """Return what has happened so far."""
        return self.recorder.history()


@dataclass(frozen=True)
class _Found:
    """The final model of a simulation, in memory."""

    trained: TrainedModel

    def __call__(self, model: ModelPart | str | None, after_round: int | None) -> TrainedModel:
        """Return it; refuse other models."""
        if model is not None or after_round is not None:
            raise RunError("model: a history in memory has the final model only, whose settings are known")
        return self.trained


def simulate(
    scenario: Scenario,
    *,
    data_dir: str | Path | None = None,
    store: StoreChoice = None,
    keeping: Keeping | str | None = None,
    on_round: Callable[[Progress], None] | None = None,
    executor: str | MakeExecutor | None = None,
    device: str | None = None,
    precision: Precision = "float32",
) -> History:
    """Run a scenario and return its history; nothing is written. See `Simulation` for the arguments.

    What the command line says of a run's end is said here too, by the logger ``fedsim``; `History.notes` holds it.

    Parameters
    ----------
    scenario : what to run
    data_dir : folder of real data sets; ``FEDSIM_DATA`` or the user's cache by default
    store : keeps results of training, so that runs that share one compute no training twice: a `Store`, the folder of
        one,
        or False for none; ``FEDSIM_STORE`` or a folder in the user's cache by default
    keeping : which models stay in the store once a newer one is there: ``"all"`` (the default), ``"last"``, ``"every
        10"``
    on_round : called after every round with a `Progress`
    executor : what computes trainings and evaluations: a kind of `fedsim.learning.EXECUTORS`, ``"module:Class"``, or
        what
        makes one; ``FEDSIM_EXECUTOR`` or ``"auto"`` by default. The history does not depend on it beyond rounding.
    device : where the executor computes, in torch's words; ``FEDSIM_DEVICE`` or ``"cpu"`` by default
    precision : of the arithmetic inside layers, ``"float32"`` or ``"bfloat16"``

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
    simulation = Simulation(
        scenario,
        data_dir=data_dir,
        store=store,
        keeping=keeping,
        on_round=on_round,
        executor=executor,
        device=device,
        precision=precision,
    )
    history = simulation.run()
    for note in history.notes:
        _LOG.warning("fedsim: %s", note)
    return history


def build_server(
    context: ServerContext,
    stopping: StoppingCriteria,
    recorder: Recorder,
    hierarchy: Hierarchy | None = None,
    on_round: Callable[[Progress], None] | None = None,
    plan: EvaluationPlan | None = None,
    *,
    audit: bool = False,
    decisions: Decisions | None = None,
) -> Server:
    """Return the server process of a run, on a clock of its own.

    Parameters
    ----------
    context : what the server and its clients depend on
    stopping : when the run is over
    recorder : records the run
    hierarchy : edge servers between the clients and the server; None for a flat federation
    on_round : called after every round, if given
    plan : which models are evaluated; by default the first one, and that of each round
    audit : whether to check of each participation that bits, time and energy are conserved
    decisions : that come from outside, for a flat federation; None for those of the selector
    """
    env = Environment()
    dispatcher = Dispatcher(env, context.clients)
    checks = None
    if audit:
        checks = Audit(
            context.learner.samples.size, dispatcher.medium, context.clients.batteries, context.clients.links
        )
        recorder.accounts = checks.accounts
    workload = context.clients.workload
    recorder.audit = TableAudit(
        (workload.down_bits, workload.up_bits),
        context.clients.accountant,
        narrow=(workload.down_sizes[1:], workload.up_sizes[1:]),
        one_server=hierarchy is None,
        asks=context.selector.probe is not None,
        draws=context.selector.draws_samples,
        any_size=decisions is not None,
    )
    runner: RoundRunner
    if hierarchy is None:
        runner = Coordinator(env, context, dispatcher, RoundLog(recorder, context, checks), decisions=decisions)
    else:
        runner = Cloud(env, context, hierarchy, dispatcher, recorder, checks)
    return Server(env, context, runner, stopping, recorder, plan or EvaluationPlan(), on_round)


def build_hierarchy(scenario: Scenario, context: ServerContext) -> Hierarchy | None:
    """Return the edge servers of a scenario, with its clients' expected times; None for a flat federation."""
    clients, edges = context.clients, scenario.rounds.edges
    if edges is None:
        return None
    expected = ExpectedTimes.of(clients.links, clients.compute, clients.workload)
    least = scenario.rounds.minimum_updates
    return Hierarchy.of(edges, clients.links, expected.duration_s, scenario.selector.build, least)


def build_context(
    scenario: Scenario,
    data_dir: str | Path | None = None,
    store: StoreChoice = None,
    executor: ExecutorChoice | None = None,
    keeping: Keeping | str | None = None,
) -> ServerContext:
    """Return what the server and its clients depend on, built from a scenario and its one seed."""
    streams = Streams(scenario.seed)
    clients = scenario.crowd.clients
    privacy = scenario.privacy
    selector = SelectorPort.of(scenario.selector.build())
    chosen = replace(executor or ExecutorChoice(), cohort=selector.cohort, rounds=scenario.rounds.count)
    learner: Learner = LEARNER_SETTINGS.checked(scenario.learning).build(
        clients=clients,
        streams=streams,
        mechanism=None if privacy is None else privacy.applied(),
        store=store,
        data_dir=None if data_dir is None else Path(data_dir),
        executor=chosen,
        keeping=Keeping.parse(keeping) if isinstance(keeping, str) else keeping,
    )
    learner = LEARNER.checked(learner, clients=clients)
    links = build_links(
        scenario.network, PLACEMENT.checked(scenario.crowd.placement).positions(clients, streams), streams
    )
    law = COMPUTE_TIME.checked(scenario.devices.compute)
    compute = law.build(clients, streams, learner.flops_per_sample if FLOPS in law.requires else None)
    side, accountant = None, None
    labels = DeclaredLabels.of(learner, streams, privacy) if selector.uses_labels else None
    if privacy is not None:
        side = SIDE_INFORMATION.checked(privacy.side_information) if selector.numbers else None
        share = 0.0 if side is None else side.share
        declared = 0.0 if labels is None else labels.epsilon
        reserved = reserved_for_sizes(selector, privacy, scenario.rounds.count)
        accountant = privacy.accountant(clients, share, declared, sampling_rate(scenario), reserved)
    most = scenario.rounds.policy.traits.cohort_size or selector.cohort or clients
    secure = SecureParts.of(scenario.rounds.secure_aggregation, clients, most, streams)
    workload = Workload(learner, selector.needs, None if secure is None else secure.masked_bits)
    expected = None
    if selector.oracle or selector.uses_features:
        expected = ExpectedTimes.of(links, compute, workload)
    faults = scenario.rounds.faults or Faults()
    devices_up = None if faults.client_crash is None else faults.client_crash.build(clients, streams)
    links_up = None if faults.link_outage is None else faults.link_outage.build(clients, streams)
    availability, batteries = _availability(scenario, streams, learner, [devices_up, links_up])
    candidacy = availability
    if accountant is not None:
        # Of the candidates alone: a client whose upload takes the last of its budget sends it to the end.
        candidacy = EligibleClients(availability, [BudgetLeft(accountant)], np.arange(clients))
    clients_context = ClientContext(
        streams=streams,
        links=links,
        compute=compute,
        availability=availability,
        dropout=DROPOUT.checked(scenario.devices.dropout),
        workload=workload,
        accountant=accountant,
        batteries=batteries,
        may_leave=scenario.devices.availability.may_leave,
        devices_up=devices_up,
        links_up=links_up,
    )
    return ServerContext(
        clients=clients_context,
        streams=streams,
        availability=candidacy,
        learner=learner,
        selector=selector,
        policy=checked_policy(scenario.rounds.policy),
        late=LATE_RULE.checked(scenario.rounds.late),
        minimum_updates=scenario.rounds.minimum_updates,
        weighting=WEIGHTING.checked(scenario.rounds.weights),
        knowledge=Knowledge(
            learner.samples,
            accountant,
            expected.features if expected is not None and selector.uses_features else None,
            workload.up_bits,
            links.uplink_snr_hz,
            links.allocates,
            columns_at_request(links, compute, workload, batteries) | ({} if labels is None else labels.columns()),
        ),
        expected_duration_s=expected.duration_s if expected is not None and selector.oracle else None,
        server_restart=faults.server_restart,
        side_information=side,
        releases=None if privacy is None else privacy.facts(),
        secure=secure,
        noise_to_signal=scenario.results.noise_to_signal and privacy is not None and learner.architecture is not None,
    )


def _availability(
    scenario: Scenario, streams: Streams, learner: Learner, breakable: list[OnOffProcess | None]
) -> tuple[Availability, Batteries | None]:
    """Return the run's availability (online, device and link up, battery charged, samples there) and the batteries."""
    devices, clients = scenario.devices, scenario.crowd.clients
    online = AVAILABILITY_MODEL.checked(devices.availability).build(clients, streams)
    if not isinstance(online, Availability):
        raise PartError(
            f"devices.availability: {type(devices.availability).__name__}.build returned {in_words(online)}",
            "allowed: an instance of fedsim.devices.Availability",
        )
    online = AVAILABILITY.checked(online)
    energy = ENERGY.checked(devices.energy)
    batteries = energy.build(clients, streams, learner.flops_per_sample if FLOPS in energy.requires else None)
    criteria: list[EligibilityCriterion] = [Working(process) for process in breakable if process is not None]
    if batteries is not None:
        criteria.append(Charge(batteries))
    works = learner.work_samples(np.arange(clients)) > 0
    # Without any work of any client, nothing tells which of them have data.
    if works.any() and not works.all():
        criteria.append(Busy(works))
    return (EligibleClients(online, criteria, np.arange(clients)) if criteria else online), batteries
