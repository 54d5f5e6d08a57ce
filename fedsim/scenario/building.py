"""What a scenario becomes: the parts that the server and its clients depend on, and the server process."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from fedsim.answers import in_words
from fedsim.capabilities import FLOPS
from fedsim.clock import Clock
from fedsim.devices import Availability, EligibleClients
from fedsim.devices.contracts import AVAILABILITY, AVAILABILITY_MODEL, COMPUTE_TIME
from fedsim.errors import PartError
from fedsim.history import Recorder
from fedsim.identity import parts_of
from fedsim.learning import ExecutorChoice, Keeping, Learner, TrainingRun
from fedsim.learning.contracts import LEARNER
from fedsim.learning.settings import LEARNER_SETTINGS
from fedsim.learning.steps.listed import BringsSteps
from fedsim.learning.steps.release import Releases as ReleaseSteps
from fedsim.learning.store.choice import StoreChoice
from fedsim.network.contracts import PLACEMENT, build_links
from fedsim.privacy import Privacy
from fedsim.privacy.side_information import SIDE_INFORMATION
from fedsim.rounds import (
    EvaluationPlan,
    Hierarchy,
    Knowledge,
    Progress,
    Run,
    Server,
    ServerContext,
    StoppingCriteria,
    Workload,
)
from fedsim.rounds.aggregation.weightings import WEIGHTING
from fedsim.rounds.clients.clients import Clients
from fedsim.rounds.effects.audit.audit import Audit
from fedsim.rounds.effects.contract import Effect, Effects
from fedsim.rounds.effects.of_parts import effects_of
from fedsim.rounds.effects.privacy.budget import PrivacyBudget, accountant_of, reserved_for_sizes
from fedsim.rounds.effects.privacy.releases import Releases
from fedsim.rounds.effects.privacy.side_numbers import SideNumbers, beside
from fedsim.rounds.effects.selector.declared_labels import DeclaredLabels
from fedsim.rounds.effects.selector.drawn_samples import DrawnSamples
from fedsim.rounds.effects.selector.questions import Questions
from fedsim.rounds.hierarchy.cloud import Cloud
from fedsim.rounds.policies.contracts import checked_policy
from fedsim.rounds.policies.late import LATE_RULE
from fedsim.rounds.secure.exchange import SecureExchange, SecureParts
from fedsim.rounds.server.asynchronous import server_of
from fedsim.rounds.server.context import Refused, RoundRules
from fedsim.rounds.server.outside import Decisions, stepped_server_of
from fedsim.rounds.server.rows import Rows
from fedsim.rounds.server.server import RoundRunner
from fedsim.run_setup import RunSetup
from fedsim.scenario import Scenario
from fedsim.scenario.private_parts import sampling_rate
from fedsim.selectors import SelectorPort
from fedsim.streams import Streams


def build_server(
    context: ServerContext,
    stopping: StoppingCriteria,
    recorder: Recorder,
    hierarchy: Hierarchy | None = None,
    on_round: Callable[[Progress], None] | None = None,
    plan: EvaluationPlan | None = None,
    *,
    decisions: Decisions | None = None,
) -> Server:
    clients = Clients(context.clients)
    env = clients.env
    recorder.widen({name: doc for effect in clients.effects for name, doc in effect.adds.items()})
    for effect in clients.effects:
        if isinstance(effect, Audit):
            recorder.accounts = effect.accounts
    runner: RoundRunner
    if hierarchy is not None:
        runner = Cloud(env, context, hierarchy, clients, recorder)
    else:
        make = server_of(context) if decisions is None else stepped_server_of(context, decisions)
        runner = make(env, context, clients, Rows(recorder, context))
    return Server(env, context, runner, stopping, recorder, plan or EvaluationPlan(), on_round)


def build_hierarchy(scenario: Scenario, context: ServerContext) -> Hierarchy | None:
    """Return the edge servers of a scenario, with its clients' expected times; None for a flat federation."""
    run, edges = context.clients, scenario.rounds.edges
    if edges is None:
        return None
    least = scenario.rounds.minimum_updates
    return Hierarchy.of(edges, run.links, run.expected_s.sum(axis=0), scenario.selector.build, least)


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
    others: dict[str, BringsSteps] = {} if privacy is None else {"privacy": ReleaseSteps(privacy.applied())}
    others |= {path: part for path, part in parts_of(scenario) if not f"{path}.".startswith("learning.")}
    training = TrainingRun(
        clients,
        streams,
        parts=others,
        store=store,
        data_dir=None if data_dir is None else Path(data_dir),
        executor=chosen,
        keeping=Keeping.parse(keeping) if isinstance(keeping, str) else keeping,
    )
    learner: Learner = LEARNER.checked(LEARNER_SETTINGS.checked(scenario.learning).build(training), clients=clients)
    most = scenario.rounds.policy.traits.cohort_size or selector.cohort or clients
    secure = SecureParts.of(scenario.rounds.secure_aggregation, clients, most, streams)
    found: list[Effect] = []
    if selector.probe is not None:
        found.append(Questions(private=privacy is not None))
    if secure is not None:
        found.append(SecureExchange(secure))
    labels = DeclaredLabels.of(learner, streams, privacy) if selector.uses_labels else None
    found += [] if labels is None else [labels]
    if privacy is not None:
        found += _private(scenario, privacy, selector, learner, 0.0 if labels is None else labels.epsilon)
    if scenario.results.audit:
        found.append(Audit(clients))
    workload = Workload(learner, beside(learner, selector.needs), float if secure is None else secure.masked_bits)
    hidden = privacy is not None or secure is not None
    draws = [DrawnSamples(hidden=hidden)] if selector.draws_samples else []
    run = build_run(scenario, streams, workload, draws, found)
    free, accountant = run.effects.having("free_s"), accountant_of(run.effects)
    return ServerContext(
        clients=run,
        effects=run.effects,
        streams=streams,
        availability=EligibleClients(run.availability, free, np.arange(clients)) if free else run.availability,
        learner=learner,
        selector=selector,
        knowledge=Knowledge(
            learner.samples,
            accountant,
            run.features if selector.uses_features else None,
            workload.up_bits,
            run.links.uplink_snr_hz,
            run.links.allocates,
            run.shows(),
        ),
        rules=RoundRules(
            policy=checked_policy(scenario.rounds.policy),
            late=LATE_RULE.checked(scenario.rounds.late),
            minimum_updates=scenario.rounds.minimum_updates,
            weighting=WEIGHTING.checked(scenario.rounds.weights),
            server_restart=None if scenario.rounds.faults is None else scenario.rounds.faults.server_restart,
            refused=Refused() if scenario.rounds.refuse_nonfinite_updates else None,
            until_s=scenario.rounds.until_s,
        ),
    )


def _private(
    scenario: Scenario, privacy: Privacy, selector: SelectorPort, learner: Learner, declared: float
) -> list[Effect]:
    """Return the effects of privacy, of which clients have spent some epsilon on what they declare."""
    side = SIDE_INFORMATION.checked(privacy.side_information) if selector.numbers else None
    share, reserved = 0.0 if side is None else side.share, reserved_for_sizes(selector, privacy, scenario.rounds.count)
    rate, computed = sampling_rate(scenario), learner.architecture is not None
    accountant = privacy.accountant(scenario.crowd.clients, share, declared, rate, reserved)
    found: list[Effect] = [PrivacyBudget(accountant, selector)]
    if side is not None:
        found.append(SideNumbers(side, computed=computed))
    measures = scenario.results.noise_to_signal and computed
    prescribing = "" if WEIGHTING.checked(scenario.rounds.weights).takes_prescribed else selector.name
    return [*found, Releases(privacy.facts(), learner if measures else None, prescribing)]


def build_run(
    scenario: Scenario, streams: Streams, workload: Workload, of_selector: Sequence[Effect], more: Sequence[Effect]
) -> Run:
    """Return what the participations of a scenario stand on, with the effects of all of its parts and others."""
    parts, clients = dict(parts_of(scenario)), scenario.crowd.clients
    positions_m = PLACEMENT.checked(scenario.crowd.placement).positions(clients, streams)
    counts = any(FLOPS in part.requires for part in parts.values())
    setup = RunSetup(clients, streams, positions_m, workload.learner.flops_per_sample if counts else None)
    run = Run(
        Clock(),
        setup,
        build_links(scenario.network, setup),
        COMPUTE_TIME.checked(scenario.devices.compute).build(setup),
        _online(scenario, setup),
        workload,
    )
    faults = {} if scenario.rounds.faults is None else {"rounds.faults": scenario.rounds.faults}
    run.effects = Effects([*effects_of({**parts, **faults}, run, of_selector), *more])
    return run


def _online(scenario: Scenario, setup: RunSetup) -> Availability:
    model = scenario.devices.availability
    online = AVAILABILITY_MODEL.checked(model).build(setup)
    if not isinstance(online, Availability):
        raise PartError(
            f"devices.availability: {type(model).__name__}.build returned {in_words(online)}",
            "allowed: an instance of fedsim.devices.Availability",
        )
    return AVAILABILITY.checked(online)
