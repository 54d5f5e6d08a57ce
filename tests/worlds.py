"""Small worlds whose every time is written down, so that a test can work out by hand what must happen."""

import copy
from dataclasses import dataclass, field

import numpy as np
import simpy

from fedsim.devices import Always
from fedsim.learning import Evaluation
from fedsim.privacy import Ledger
from fedsim.rounds import Ending, Knowledge, Recorder, Server, World
from fedsim.streams import Streams


class FixedLinks:
    """Downlink and uplink take what a table says, whatever the round."""

    def __init__(self, downlink_s, uplink_s):
        self.down, self.up = np.asarray(downlink_s, float), np.asarray(uplink_s, float)

    def downlink_s(self, client, round_, start_s, bits):
        return self.down[client]

    def uplink_s(self, client, round_, start_s, bits):
        return self.up[client]

    def expected_downlink_s(self, bits):
        return self.down

    def expected_uplink_s(self, bits):
        return self.up


class FixedCompute:
    """Work takes what a table says."""

    def __init__(self, seconds):
        self.seconds = np.asarray(seconds, float)

    def duration_s(self, client, round_, samples):
        return self.seconds[client]

    def expected_s(self, samples):
        return self.seconds


class FixedDropout:
    """Clients leave at the given second after the start of the round; inf for never."""

    def __init__(self, seconds):
        self.seconds = np.asarray(seconds, float)

    def time_to_dropout_s(self, client, round_, streams, phases_s=None):
        return self.seconds[client]


@dataclass
class CountedModel:
    version: int
    digest: str = ""


@dataclass
class CountingLearner:
    """Learns nothing and writes down everything that it is asked."""

    samples: np.ndarray
    model_bits: float = 1.0
    accuracies: list = field(default_factory=list)
    asked: list = field(default_factory=list)
    aggregated: list = field(default_factory=list)
    evaluated: list = field(default_factory=list)

    def work_samples(self, client, work=None):
        return self.samples[client].astype(float)

    def initial(self):
        return CountedModel(0)

    def update(self, model, client, release=None, work=1.0):
        self.asked.append((model.version, client, release, work))
        return client

    def aggregate(self, model, updates, weights):
        self.aggregated.append((list(updates), list(weights)))
        return CountedModel(model.version + 1)

    def losses(self, updates):
        return np.array([float(update) for update in updates])

    def evaluate(self, model):
        self.evaluated.append(model.version)
        accuracy = self.accuracies[len(self.evaluated) - 1] if self.accuracies else 0.5
        return Evaluation(accuracy, 1.0)


class Everybody:
    """Selects every candidate and keeps what it is shown (a copy: views are live) and told."""

    def __init__(self):
        self.views, self.reports = [], []

    def select(self, view, rng):
        self.views.append(copy.deepcopy(view))
        return view.client

    def observe(self, reports):
        self.reports.append(reports)


class Sequence(Everybody):
    """Selects the cohorts of a list, one after another."""

    def __init__(self, cohorts):
        super().__init__()
        self.cohorts = cohorts

    def select(self, view, rng):
        super().select(view, rng)
        return self.cohorts[view.round - 1]


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
    audit=True,
    **ending,
):
    """Run a server in a world of fixed times, or over the links given; return history, selector, learner and ledger."""
    clients = len(downlink_s)
    learner = learner or CountingLearner(np.full(clients, 10))
    selector = selector or Everybody()
    ledger = None if budget is None else Ledger(budget, clients)
    world = World(
        streams=Streams(0),
        links=links or FixedLinks(downlink_s, uplink_s),
        compute=FixedCompute(compute_s),
        presence=presence or Always().build(clients, Streams(0)),
        dropout=FixedDropout([np.inf] * clients if leaves_s is None else leaves_s),
        learner=learner,
        selector=selector,
        policy=policy,
        ledger=ledger,
        knowledge=Knowledge(learner.samples, ledger, None),
    )
    env = simpy.Environment()
    recorder = Recorder("test")
    server = Server(env, world, Ending(**{"count": 1, **ending}), recorder, audit=audit)
    env.run(until=env.process(server.serve()))
    return recorder.history(), selector, learner, ledger
