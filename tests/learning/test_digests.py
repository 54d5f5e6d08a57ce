"""Which fields of a scenario move which digests: all that changes a result does, and nothing else.

Every field of the schema is changed, one at a time, and `tests.support.digest_moves` says what must move and why.
Both scenarios are then asked for the same pieces of work: trainings of the same clients, the same arrivals.
"""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from fedsim import Scenario
from fedsim.identity import identity
from fedsim.learning import AGGREGATIONS, MODELS, SERVER_OPTIMIZERS, ExecutorChoice, MemoryStore, Release
from fedsim.learning.data.datasets import DATASETS
from fedsim.learning.executors.sequential import SequentialExecutor
from fedsim.privacy.mechanisms import MECHANISMS
from fedsim.rounds.effects.privacy.budget import accountant_of
from fedsim.rounds.hierarchy.cloud_rules import EdgeStatus
from fedsim.scenario.building import build_context, build_hierarchy
from tests.support.data_files import write_data_sets
from tests.support.digest_moves import BELOW, DIGESTS, MOVES, moves_of
from tests.support.field_values import ONE_VALUE, TABLES, write_files
from tests.support.scenario_fields import schema_fields
from tests.support.tiny_images import Tiny

STALENESS = 7
"""Of the update that is stale: beyond where the law "hinge" begins."""


class Noting(MemoryStore):
    """Has a record under every digest, and notes which evaluations were asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = []

    def records(self, digests):
        self.asked += digests
        known = {"accuracy": 0.5, "loss": 1.0, "deviation": 0.5, **{str(number): 1.0 for number in range(30)}}
        return dict.fromkeys(digests, known)


def digests(scenario, executor=None):
    """Return the digests of the same pieces of work for any scenario; nothing is trained."""
    store = Noting()
    context = build_context(scenario, None, store, executor or ExecutorChoice())
    learner = context.learner
    start, crowd = learner.initial(), np.arange(learner.samples.size)
    sent = sent_updates(context, start)
    following = next_model(context, start, sent)
    cloud = cloud_model(scenario, context, start, sent, following)
    store.asked.clear()
    learner.start_evaluation(following)
    return {
        "start": start.digest,
        "training": [update.digest for update in learner.updates(start, crowd)],
        "sent": [update.digest for update in sent],
        "model": following.digest,
        "cloud": cloud.digest,
        "evaluation": list(store.asked),
    }


def sent_updates(context, base):
    """Return what each client sends the first time, private if the scenario says so."""
    crowd, accountant = np.arange(context.learner.samples.size), accountant_of(context.effects)
    if accountant is None:
        return context.learner.updates(base, crowd)
    return context.learner.updates(base, crowd, {one: Release(*accountant.charge(one)) for one in crowd.tolist()})


def next_model(context, start, sent):
    """Return the model after five fresh updates, and then four fresh ones and a stale one."""
    rule = fresh_rule(context)
    rule.on_dispatch(np.arange(context.learner.samples.size), start)
    rule.on_round_start(start)
    first = rule.aggregate(start, arrivals(context, sent[:5], [0, 1, 2, 3, 4], [start] * 5)).model
    rule.on_round_start(first)
    rule.on_dispatch(np.array([0, 1]), first)
    fresh = context.learner.updates(first, np.array([0, 1, 3, 4]))
    staleness = np.array([0, 0, 0, 0, STALENESS])
    taken = np.flatnonzero(rule.accepts(staleness, staleness > 0)).tolist()
    client, mixed, bases = [0, 1, 3, 4, 2], [*fresh, sent[2]], [*([first] * 4), start]
    chosen = [mixed[i] for i in taken]
    second = arrivals(context, chosen, [client[i] for i in taken], [bases[i] for i in taken], staleness[taken])
    return rule.aggregate(first, second).model


def fresh_rule(context):
    """Return the rule of the policy, or else that of the late rule, as a server does."""
    own = context.rules.policy.aggregation(context.learner)
    return context.rules.late.aggregation(context.learner) if own is None else own


def arrivals(context, updates, client, bases, staleness=None):
    """Return `Arrivals`, of clients each of which counts by the scenario's weights; they come a second apart."""
    nothing, weighting = np.zeros(len(client), dtype=bool), context.rules.weighting
    return SimpleNamespace(
        client=np.array(client),
        updates=updates,
        base=bases,
        weight=weighting.of_clients(context.learner.samples, context.clients.streams)[client],
        total=1.0 if weighting.scaled else None,
        staleness=np.zeros(len(client), dtype=np.int64) if staleness is None else staleness,
        arrived_s=np.arange(len(client), dtype=np.float64),
        picked_before=nothing,
        held=nothing,
    )


def cloud_model(scenario, context, start, sent, flat):
    """Return the cloud's model after one round of each edge server; that of the flat server without edge servers."""
    hierarchy = build_hierarchy(scenario, context)
    if hierarchy is None:
        return flat
    learner, edges = context.learner, hierarchy.edges
    models = [
        fresh_rule(context).aggregate(start, arrivals(context, [sent[i] for i in own], own, [start] * len(own))).model
        for own in (member.tolist() for member in hierarchy.members)
    ]
    fresh = np.arange(len(models)) < (len(models) if edges.merging.waits_for_all else 1)
    status = EdgeStatus(
        samples=np.array([float(learner.samples[member].sum()) for member in hierarchy.members]),
        delivered=np.arange(len(models), 0, -1),
        fresh=fresh,
        staleness=STALENESS * fresh,
    )
    own, shares = edges.merging.shares(status)
    parts = [(model, share) for model, share in zip([start, *models], [own, *shares.tolist()], strict=True) if share]
    mean = learner.merge([model for model, _ in parts], np.array([share for _, share in parts]), version=2)
    return learner.server_step(start, mean, edges.server)


@pytest.fixture(autouse=True, scope="module")
def _files(tmp_path_factory):
    """Lay out the files that scenarios name, and let published sets hold a few images."""
    place, data = tmp_path_factory.mktemp("files"), Tiny(samples=200, side=32).load()
    write_files(place)
    write_data_sets(place)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        patch.setenv("FEDSIM_DATA", str(place))
        for kind in ("mnist", "fashion-mnist", "cifar-10", "cifar-100"):
            patch.setattr(DATASETS.load(kind), "load", lambda self, _: self.limited(data))
        yield


@pytest.mark.parametrize("every", [96, pytest.param(1, marks=pytest.mark.slow)])
def test_each_field_of_a_scenario_moves_the_digests_that_it_must_and_no_other(every):
    known = {}
    unchanged, wrong = [], {}
    for number, field in enumerate(schema_fields()):  # scenarios are told apart by their ids
        if number % every:
            continue
        changed = field.changed()
        if (changed is None) != (field.name in ONE_VALUE.get(field.part, ())):
            unchanged.append((field.part, field.name))
        if changed is None:
            continue
        if id(field.scenario) not in known:
            known[id(field.scenario)] = field.scenario.digest(), digests(field.scenario)
        digest, before = known[id(field.scenario)]
        after = digests(changed)
        moved = {name for name in DIGESTS if after[name] != before[name]}
        if moved != moves_of(field.part, field.name).digests or changed.digest() == digest:
            wrong[field.part, field.name] = moved, changed.digest() != digest
    assert (unchanged, wrong) == ([], {}), "fields without another value, and wrong moves"


def test_there_is_an_expectation_for_each_field_of_the_schema_and_for_no_other():
    fields = {(field.part, field.name) for field in schema_fields()}
    assert [field for field in fields if moves_of(*field) is None] == []
    tables = {part.partition(" ")[0] for part, _ in fields}
    assert (MOVES.keys() - fields, BELOW.keys() - tables) == (set(), set())


def test_whatever_a_call_of_the_learner_is_told_moves_the_digest_of_what_it_returns():
    learner = build_context(Scenario(**TABLES), None, Noting(), ExecutorChoice()).learner
    start, pair = learner.initial(), np.array([0, 1])
    updates = learner.updates(start, pair)
    other = learner.aggregate(start, updates, np.array([0.5, 0.5]))
    trainings = [
        updates[0],
        updates[1],
        *learner.updates(other, pair[:1]),
        *learner.updates(start, pair[:1], work=np.array([0.5])),
        *learner.updates(start, pair[:1], repeat=1),
        *learner.updates(start, pair[:1], {0: Release(0.5, 1)}),
        *learner.updates(start, pair[:1], {0: Release(0.25, 1)}),
        *learner.updates(start, pair[:1], {0: Release(0.5, 2)}),
    ]
    assert len({update.digest for update in trainings}) == len(trainings)
    models = [
        start,
        other,
        learner.aggregate(other, updates, np.array([0.5, 0.5])),
        learner.aggregate(other, updates, np.array([0.5, 0.5]), of="model"),
        learner.aggregate(other, updates[::-1], np.array([0.5, 0.5]), of="model"),
        learner.aggregate(other, updates, np.array([0.5, 0.25]), of="model"),
        learner.aggregate(start, learner.updates(other, pair), np.array([0.5, 0.5]), of="model"),
        learner.aggregate(start, updates[::-1], np.array([0.5, 0.5])),
        learner.aggregate(start, updates, np.array([0.5, 0.25])),
        learner.aggregate(start, updates[:1], np.array([0.5])),
        learner.merge([start, other], np.array([0.5, 0.5])),
        learner.merge([start, other], np.array([0.25, 0.75])),
        learner.trained(start, updates[0]),
        learner.server_step(start, other),
        learner.with_state_of(start, other),
    ]
    assert len({model.digest for model in models}) == len(models)
    # What a client would send from the very same model is one piece of work, with whichever other clients.
    assert learner.updates(start, pair[::-1])[1].digest == updates[0].digest


@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")
@pytest.mark.parametrize("registry", [MODELS, AGGREGATIONS, SERVER_OPTIMIZERS, MECHANISMS])
def test_every_option_of_a_part_that_computes_is_in_its_identity(registry: Any) -> None:
    for kind in registry.builtin:
        names = registry.load(kind).model_fields
        part = registry.load(kind).model_construct(**dict.fromkeys(names, 1.0))
        for name in names:
            one, other = (identity(part.model_copy(update={name: value})) for value in (1.25, 2.5))
            assert one != other, f"{kind}.{name}"


def test_the_executor_counts_where_its_bits_differ_and_workers_do_not(monkeypatch):
    class Otherwise(SequentialExecutor):
        fingerprint = "otherwise"

    expected = digests(Scenario(**TABLES))
    found = digests(Scenario(**TABLES), executor=ExecutorChoice(Otherwise))
    assert all(found[name] != expected[name] for name in DIGESTS)
    monkeypatch.setenv("FEDSIM_WORKERS", "1")
    assert digests(Scenario(**TABLES), executor=ExecutorChoice("processes")) == expected


@pytest.mark.parametrize(
    ("what", "value"), [("fedsim.learning.blueprint.release", lambda: "another"), ("torch.__version__", "another")]
)
def test_versions_that_compute_count(what, value, monkeypatch):
    expected = digests(Scenario(**TABLES))
    monkeypatch.setattr(what, value)
    found = digests(Scenario(**TABLES))
    assert all(found[name] != expected[name] for name in DIGESTS)
