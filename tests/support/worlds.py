"""Small worlds whose every time is written down, so that a test can work out by hand what must happen."""

import copy
from dataclasses import dataclass, field

import numpy as np

from fedsim.clock import Clock
from fedsim.devices import Always, Batteries, Dropout, EligibleClients, Prices
from fedsim.devices.availability.traces import Intervals, TraceAvailability
from fedsim.history import Recorder
from fedsim.learning import ClientEvaluations, Evaluation, KnownEvaluation
from fedsim.network.contracts import Directions, Links
from fedsim.network.medium.multicast import Multicast
from fedsim.network.medium.spectrum import SharedSpectrum
from fedsim.network.transfers import SharedMedium
from fedsim.privacy import PrivacyAccountant
from fedsim.rounds import Cancel, EvaluationPlan, Hierarchy, Knowledge, Run, ServerContext, StoppingCriteria, Workload
from fedsim.rounds.effects.audit.audit import Audit
from fedsim.rounds.effects.battery import Battery
from fedsim.rounds.effects.connections import Connections
from fedsim.rounds.effects.contract import Effects
from fedsim.rounds.effects.faults.outages import Outages
from fedsim.rounds.effects.leaving import Crashes, Offline
from fedsim.rounds.effects.of_parts import of_dropout
from fedsim.rounds.effects.privacy.budget import PrivacyBudget
from fedsim.rounds.effects.privacy.side_numbers import beside
from fedsim.rounds.effects.selector.allocation import Allocation
from fedsim.rounds.effects.selector.drawn_samples import DrawnSamples
from fedsim.rounds.effects.selector.questions import Questions
from fedsim.rounds.secure.exchange import SecureExchange
from fedsim.rounds.server.context import RoundRules
from fedsim.run_setup import RunSetup
from fedsim.scenario.building import build_server
from fedsim.selectors import Probe, SelectorPort
from fedsim.streams import Streams


def opened(env, rule, bandwidth_hz=1.0):
    return rule(env, bandwidth_hz) if rule is Multicast else SharedSpectrum(env, bandwidth_hz, rule())


class FixedLinks(Links):
    def __init__(self, downlink_s, uplink_s):
        self.down, self.up = np.asarray(downlink_s, float), np.asarray(uplink_s, float)

    def downlink_s(self, client, draw, start_s, bits):
        return self.down[client]

    def uplink_s(self, client, draw, start_s, bits):
        return self.up[client]

    def expected_downlink_s(self, bits):
        return self.down

    def expected_uplink_s(self, bits):
        return self.up


class Pipe(FixedLinks, SharedMedium):
    """One pipe of 1 bit/s in each shared direction; messages have one bit, so a client alone takes 1 s."""

    def __init__(self, downlink_s, uplink_s, *, down=None, up=None):
        super().__init__(downlink_s, uplink_s)
        self.rules, self.shared = (down, up), Directions(down is not None, up is not None)

    def open(self, env):
        self.down_medium, self.up_medium = (rule and opened(env, rule) for rule in self.rules)
        return self

    def downlink(self, client, bits):
        return self.down_medium.send(bits, 1.0 if self.down[client] < np.inf else 0.0)

    def uplink(self, client, bits):
        return self.up_medium.send(bits, 1.0)

    def books(self):
        media = {"down": self.down_medium, "up": self.up_medium}
        # A multicast has its spectrum inside.
        return {name: getattr(medium, "medium", medium).book() for name, medium in media.items() if medium is not None}


class FixedCompute:
    def __init__(self, seconds):
        self.seconds = np.asarray(seconds, float)

    def duration_s(self, client, draw, samples):
        return self.seconds[client]

    def expected_s(self, samples):
        return self.seconds


class FixedDropout(Dropout):
    """Clients leave at the given second after the start of the round; inf for never."""

    def __init__(self, seconds):
        self.seconds = np.asarray(seconds, float)

    def time_to_dropout_s(self, client, draw, streams, phases_s=None):
        return self.seconds[client]


def available_in(*rows, period_s=1000.0):
    owner = [client for client, row in enumerate(rows) for _ in row]
    start, end = ([times[i] for row in rows for times in row] for i in (0, 1))
    return TraceAvailability(Intervals.of(owner, start, end, [period_s] * len(rows)), np.arange(len(rows)))


def batteries(
    charge_j,
    *,
    receive=0.0,
    sample=0.0,
    work_w=0.0,
    send=0.0,
    capacity=100.0,
    gain_w=0.0,
    least=1e-9,
    radio_w=(0.0, 0.0),
    base_w=0.0,
):
    """Return batteries with the charges given; prices are per bit, sample, second of work, second of the radio."""
    prices = Prices(
        receive_j_per_bit=receive,
        transmit_j_per_bit=send,
        sample_j=sample,
        compute_w=work_w,
        receive_w=radio_w[0],
        transmit_w=radio_w[1],
        base_w=base_w,
    )
    charge = np.asarray(charge_j, float)
    return Batteries(prices, capacity_j=capacity, idle_gain_w=gain_w, least_j=least, charge_j=charge)


def charged(availability, power):
    return EligibleClients(availability, [Battery(power)], np.arange(power.clients))


@dataclass
class CountedModel:
    version: int
    digest: str = ""


@dataclass
class CountingLearner:
    """Learns nothing and writes down everything that it is asked."""

    samples: np.ndarray
    model_bits: float = 1.0
    update_bits: float = 1.0
    remembers: bool = False
    widths: object = None
    accuracies: list = field(default_factory=list)
    asked: list = field(default_factory=list)
    repeats: list = field(default_factory=list)
    aggregated: list = field(default_factory=list)
    merged: list = field(default_factory=list)
    evaluated: list = field(default_factory=list)
    evaluated_clients: list = field(default_factory=list)

    def work_samples(self, client, work=None, got=None):
        return (self.samples[client] if got is None else got).astype(float)

    def whole_steps(self, client, work, *, up):
        return work

    def initial(self):
        return CountedModel(0)

    def updates(self, model, client, releases=None, work=None, repeat=0, level=None, drawn=None):
        shares = np.ones(len(client)) if work is None else work
        self.repeats += [(model.version, one, repeat) for one in client.tolist()]
        for i, one in enumerate(client.tolist()):
            self.asked.append((model.version, one, (releases or {}).get(i), shares[i]))
        return client.tolist()

    def aggregate(self, model, updates, weights, *, of="difference"):
        self.aggregated.append((list(updates), list(weights)))
        return CountedModel(model.version + 1)

    def merge(self, models, weights, version=None):
        self.merged.append(([model.version for model in models], list(weights)))
        return CountedModel(max(model.version for model in models) + 1 if version is None else version)

    def trained(self, base, update):
        return CountedModel(base.version + 1)

    def server_step(self, model, mean, optimizer=None):
        return mean

    def with_state_of(self, model, previous):
        return model

    def measure(self, updates, needs):
        return {need: np.array([float(update) for update in updates]) for need in needs}

    def deviations(self, fresh, fresh_weights, stale):
        return np.zeros(len(stale))

    def probe_losses(self, model, client, samples, round_):
        return client.astype(float)

    def probe_samples(self, client, samples):
        return self.samples[client] / 3

    def start_evaluation(self, model):
        self.evaluated.append(model.version)
        accuracy = self.accuracies[len(self.evaluated) - 1] if self.accuracies else 0.5
        return KnownEvaluation(Evaluation(accuracy, 1.0))

    def evaluate_clients(self, model):
        self.evaluated_clients.append(model.version)
        return ClientEvaluations(
            np.arange(self.samples.size) / self.samples.size, np.ones(self.samples.size), {}, self.samples, False, False
        )

    def export(self, model):
        return {"version": np.array(model.version)}


class Everybody:
    """Selects every candidate and keeps what it is shown (a copy: views are live) and told."""

    def __init__(self):
        self.views, self.reports = [], []

    def select(self, view, rng):
        self.views.append(copy.deepcopy(view))
        return view.client

    def observe(self, reports):
        self.reports.append(reports)


class Curious(Everybody):
    """Selects every candidate and asks for the losses of delivered updates."""

    needs = ("loss",)


class Asking(Everybody):
    """Asks clients, or all candidates, before it selects every candidate: in all rounds, or in those given."""

    def __init__(self, client=None, rounds=None, asks="loss", up_bits=1.0, **question):
        super().__init__()
        self.client, self.rounds, self.question = client, rounds, {"asks": asks, "up_bits": up_bits, **question}

    def probe(self, view, rng):
        if self.rounds is not None and view.round not in self.rounds:
            return None
        return Probe(client=view.client if self.client is None else np.array(self.client), **self.question)


class Sequence(Everybody):
    """Selects the cohorts of a list, one after another."""

    def __init__(self, cohorts):
        super().__init__()
        self.cohorts = cohorts

    def select(self, view, rng):
        super().select(view, rng)
        return self.cohorts[view.round - 1]


class FirstWanted(Everybody):
    """Selects as many candidates as the server asks for, those with the lowest ids."""

    def select(self, view, rng):
        return super().select(view, rng)[: view.wanted]


def serve(
    policy,
    downlink_s,
    compute_s,
    uplink_s,
    *,
    leaves_s=None,
    presence=None,
    selector=None,
    budget=None,
    learner=None,
    links=None,
    dropout=None,
    batteries=None,
    audit=True,
    late=None,
    minimum_updates=1,
    edges=None,
    selectors=None,
    devices_up=None,
    links_up=None,
    server_restart=None,
    streams=None,
    secure=None,
    effects=(),
    **ending,
):
    """Run a server in a world of fixed times, or over the links given; return history, selector, learner and ledger.

    Of the ending, ``evaluate_every``, ``evaluate_start`` (False by default) and ``evaluate_of_clients`` say which
    models are evaluated.

    With edges, the selectors are those of the edge servers, each of them everybody if none are given.
    """
    clients = len(downlink_s)
    learner = learner or CountingLearner(np.full(clients, 10))
    selector = selector or Everybody()
    port = SelectorPort.of(selector)
    ledger = None if budget is None else PrivacyAccountant(budget, clients)
    presence = presence or Always().build(RunSetup(clients, Streams(0)))
    streams = streams or Streams(0)
    run = Run(
        Clock(),
        RunSetup(clients, streams),
        links or FixedLinks(downlink_s, uplink_s),
        FixedCompute(compute_s),
        presence,
        Workload(learner, beside(learner, port.needs), secure.masked_bits if secure else float),
    )
    faults = [] if links_up is None else [Outages(links_up)]
    faults += [] if devices_up is None else [Crashes(devices_up)]
    power = [] if batteries is None else [Battery(batteries)]
    leaving = of_dropout(dropout or FixedDropout([np.inf] * clients if leaves_s is None else leaves_s), run)
    accounts = [] if ledger is None else [PrivacyBudget(ledger, port)]
    accounts += [] if port.probe is None and edges is None else [Questions(private=ledger is not None)]
    accounts += [] if secure is None else [SecureExchange(secure)]
    connections = [] if run.links.connection is None else [Connections(run.links.connection)]
    own = [Offline(presence), *leaving, *effects, *faults, *connections, *power, *accounts]
    draws = [DrawnSamples(hidden=not (ledger is None and secure is None))] if port.draws_samples else []
    found = [*draws, Allocation(), *(late or Cancel()).effects(run), *own]
    run.effects = Effects([*found, Audit(clients)] if audit else found)
    conditions = [*faults, *power]
    presence = EligibleClients(presence, conditions, np.arange(clients)) if conditions else presence
    context = ServerContext(
        clients=run,
        effects=run.effects,
        streams=streams,
        availability=presence,
        learner=learner,
        selector=port,
        knowledge=Knowledge(learner.samples, ledger, None),
        rules=RoundRules(
            policy=policy, late=late or Cancel(), minimum_updates=minimum_updates, server_restart=server_restart
        ),
    )
    hierarchy = None
    if edges is not None:
        made = iter(selectors or ())
        expected_s = np.sum([downlink_s, compute_s, uplink_s], axis=0)
        hierarchy = Hierarchy.of(
            edges, context.clients.links, expected_s, lambda: next(made, Everybody()), minimum_updates
        )
    recorder = Recorder("test")
    names = ("every", "start", "of_clients")
    told = {name: ending.pop(f"evaluate_{name}") for name in names if f"evaluate_{name}" in ending}
    plan = EvaluationPlan(**{"start": False, **told})
    stopping = StoppingCriteria(**{"count": 1, **ending})
    build_server(context, stopping, recorder, hierarchy, plan=plan).run()
    return recorder.history(), selector, learner, ledger
