"""What a scenario becomes: the parts that the server and its clients depend on, and the server process."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from fedsim.answers import in_words
from fedsim.capabilities import FLOPS
from fedsim.clock import Clock
from fedsim.devices import Availability, Batteries, Busy, Charge, EligibilityCriterion, EligibleClients, Working
from fedsim.devices.availability.on_off import OnOffProcess
from fedsim.devices.contracts import AVAILABILITY, AVAILABILITY_MODEL, COMPUTE_TIME, DROPOUT
from fedsim.devices.energy import ENERGY
from fedsim.errors import PartError
from fedsim.history import Recorder
from fedsim.learning import ExecutorChoice, Keeping, Learner
from fedsim.learning.contracts import LEARNER
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
from fedsim.rounds.clients.budget_left import BudgetLeft
from fedsim.rounds.clients.clients import Clients
from fedsim.rounds.effects.kinds import EFFECT_SETTINGS
from fedsim.rounds.hierarchy.cloud import Cloud
from fedsim.rounds.policies.contracts import checked_policy
from fedsim.rounds.policies.late import LATE_RULE
from fedsim.rounds.secure.exchange import SecureParts
from fedsim.rounds.server.at_request import columns_at_request
from fedsim.rounds.server.coordinator import Coordinator
from fedsim.rounds.server.decisions import Decisions
from fedsim.rounds.server.declared import DeclaredLabels, reserved_for_sizes
from fedsim.rounds.server.refused import Refused
from fedsim.rounds.server.round_log import RoundLog
from fedsim.rounds.server.server import RoundRunner
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
    audit: bool = False,
    decisions: Decisions | None = None,
) -> Server:
    """Return the server process of a run, on a clock of its own."""
    env = Clock()
    clients = Clients(env, context.clients)
    checks = None
    if audit:
        checks = Audit(
            context.learner.samples.size, clients.run.medium, context.clients.batteries, context.clients.links
        )
        recorder.accounts = checks.accounts
    runner: RoundRunner
    if hierarchy is None:
        runner = Coordinator(env, context, clients, RoundLog(recorder, context, checks), decisions=decisions)
    else:
        runner = Cloud(env, context, hierarchy, clients, recorder, checks)
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
        own_effects=[EFFECT_SETTINGS.checked(part).build(clients, streams) for part in scenario.rounds.effects],
        least_work=LATE_RULE.checked(scenario.rounds.late).least_share,
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
        refused=Refused() if scenario.rounds.refuse_nonfinite_updates else None,
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
