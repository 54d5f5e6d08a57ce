"""What holds for every policy and late rule, whatever the times, dropouts, absences, batteries and shared links."""

import os
import subprocess
import sys
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import assume, given, strategies as st

from fedsim.errors import ScenarioError
from fedsim.network.medium.disciplines import EqualSharing, FirstCome
from fedsim.privacy import GeometricBudget
from fedsim.rounds import Cancel, Deadline
from fedsim.rounds.aggregation.staleness import Deviation
from fedsim.rounds.policies.adaptive import MovingAverage, QuantileDeadline
from fedsim.rounds.policies.asynchronous import FedAsync, FedBuff
from fedsim.rounds.policies.count_based import KFastest, Quorum
from fedsim.rounds.policies.late import Drop, Partial, Stale
from fedsim.rounds.policies.safa import Safa
from fedsim.rounds.server import asynchronous as server
from tests.support.pages import ROOT
from tests.support.worlds import CountingLearner, Curious, Everybody, FirstWanted, Pipe, available_in, batteries, serve

ROUNDS = 4
FIRST = 10.0 * (np.exp(0.04) - 1) * np.exp(-0.04)

# Multiples of 1/2 s make ties; other numbers make instants that are no binary fractions.
spans = st.one_of(st.integers(0, 6).map(lambda halves: halves / 2), st.floats(0.05, 4.0))
lengths = st.one_of(st.integers(1, 8).map(float), st.floats(0.5, 9.0))
synchronous = st.one_of(
    st.builds(Deadline, deadline_s=lengths),
    st.builds(KFastest, k=st.integers(1, 3), over_selection=st.sampled_from([1.0, 1.3, 2.0]), max_wait_s=lengths),
    st.builds(Quorum, share=st.sampled_from([0.3, 0.5, 1.0]), min_wait_s=st.just(0.5), max_wait_s=lengths),
    st.builds(QuantileDeadline, quantile=st.sampled_from([0.5, 1.0]), initial_s=lengths),
    st.builds(MovingAverage, initial_s=lengths, target_share=st.sampled_from([0.5, 1.0]), growth=st.just(1.5)),
)
lates = st.sampled_from(
    [Cancel(), Drop(), Stale(), Stale(max_staleness=1), Stale(weight=Deviation()), Partial(least_work=0.2)]
)
asynchronous = st.one_of(
    st.builds(FedAsync, concurrency=st.integers(1, 5), give_up_s=lengths),
    st.builds(
        FedBuff,
        buffer=st.integers(1, 4),
        concurrency=st.integers(1, 5),
        max_staleness=st.sampled_from([None, 0, 1]),
        give_up_s=lengths,
    ),
)
safa = st.builds(Safa, share=st.sampled_from([0.3, 0.6, 1.0]), max_wait_s=lengths, lag=st.integers(0, 2))
rules = st.one_of(
    st.tuples(synchronous, lates), st.tuples(asynchronous, st.just(Cancel())), st.tuples(safa, st.just(Cancel()))
)


@dataclass
class Labelling(CountingLearner):
    """A learner whose every update is a thing of its own."""

    used: list = field(default_factory=list)
    made: int = 0

    def updates(self, model, client, releases=None, work=None, repeat=0, level=None):
        super().updates(model, client, releases, work, repeat)
        self.made += len(client)
        return [(self.made - i, one, model.version) for i, one in enumerate(client.tolist())]

    def aggregate(self, model, updates, weights, *, of="difference"):
        self.used += updates
        return super().aggregate(model, updates, weights)

    def trained(self, base, update):
        self.used.append(update)
        return super().trained(base, update)

    def measure(self, updates, needs):
        return {need: np.array([float(client) for _, client, _ in updates]) for need in needs}


@st.composite
def worlds(draw):
    """Return the arguments of a run."""
    clients = draw(st.integers(1, 5))
    columns = [draw(st.lists(spans, min_size=clients, max_size=clients)) for _ in range(3)]
    policy, late = draw(rules)
    chosen = {"selector": draw(st.sampled_from([Everybody, FirstWanted, Curious]))()}
    chosen["minimum_updates"] = draw(st.sampled_from([1, 1, 2]))
    if draw(st.booleans()):
        lasts = st.one_of(st.just(np.inf), spans.filter(bool))
        chosen["leaves_s"] = draw(st.lists(lasts, min_size=clients, max_size=clients))
    if draw(st.booleans()):
        absences = st.tuples(st.just(0.0) | st.floats(1e-6, 5), st.floats(0.5, 20)).map(
            lambda pair: [(pair[0], pair[0] + pair[1])]
        )
        chosen["presence"] = available_in(*draw(st.lists(absences, min_size=clients, max_size=clients)), period_s=40.0)
    if draw(st.booleans()):
        charge_j = draw(st.lists(st.floats(0.0, 12.0), min_size=clients, max_size=clients))
        chosen["batteries"] = batteries(
            charge_j, work_w=1.0, receive=0.5, send=1.0, capacity=12.0, gain_w=draw(st.sampled_from([0.0, 0.3, 1.0])),
            least=0.5,
        )  # fmt: skip
    if draw(st.booleans()):
        down, up = (draw(st.sampled_from([None, EqualSharing, FirstCome])) for _ in range(2))
        if down or up:
            chosen["links"] = Pipe(columns[0], columns[2], down=down, up=up)
    learner = Labelling(np.full(clients, 10))
    return (policy, *columns), {"late": late, "learner": learner, "count": ROUNDS, "until_s": 300.0, **chosen}


def run(world, **more):
    arguments, options = world
    try:
        return serve(*arguments, **options, **more, budget=GeometricBudget(epsilon=10.0, eta=0.04))
    except ScenarioError as error:
        assume("no round can start" not in str(error))
        assume("in a row were given up" not in str(error))
        raise


@pytest.fixture(autouse=True, scope="module")
def impatience():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(server, "PATIENCE", 50)
        yield


@given(worlds())
def test_laws_of_all_rounds(world):
    history, selector, learner, ledger = run(world)
    rows = history.participations.to_pylist()
    rounds = history.rounds.to_pylist()
    assert set(np.diff(history.column("rounds", "model_version"))) <= {0, 1}
    check_use(rows, rounds, learner)
    check_budget(rows, ledger)
    check_reports(rows, selector, len(learner.samples))
    concurrency = getattr(world[0][0], "concurrency", None)
    if concurrency is not None:
        check_concurrency(rows, concurrency)


def check_use(rows, rounds, learner):
    """No update is used before it has arrived, and none twice; `tests/support/table_audit.py` has what tables tell."""
    ends_s = {row["round"]: row["end_s"] for row in rounds}
    versions = {0: 0, **{row["round"]: row["model_version"] for row in rounds}}
    made_s = {0: 0.0}
    for row in rounds:
        made_s.setdefault(row["model_version"], row["end_s"])
    for row in rows:
        served = row["served_round"]
        assert row["start_s"] >= made_s[row["start_version"]], "nobody starts from a model that is not made"
        if served is not None:
            assert row["end_s"] <= ends_s[served]
            assert row["staleness"] == versions[served - 1] - row["start_version"] >= 0
            assert versions[served] == versions[served - 1] + 1
    assert len(set(learner.used)) == len(learner.used), "no update is used twice"
    expected = sorted((row["client"], row["start_version"]) for row in rows if row["served_round"] is not None)
    assert sorted((client, version) for _, client, version in learner.used) == expected
    keys = [repeat for repeat in learner.repeats if (repeat[1], repeat[0]) in expected]
    assert len(set(keys)) == len(keys), "who trains again from the very same model trains anew"


def check_budget(rows, ledger):
    """Who has begun to upload has paid, in the order of its uploads, and nobody else."""
    spent = np.zeros(ledger.spent.size)
    for client in range(spent.size):
        mine = sorted((row for row in rows if row["client"] == client), key=lambda row: row["start_s"])
        uploads = 0
        for row in mine:
            began = row["cut_in"] in (None, "uplink")
            paid = FIRST * np.exp(-0.04 * uploads)
            # Who is cut off at the very instant at which its upload would begin may have begun it or not.
            if not began or (row["cut_in"] == "uplink" and row["uplink_bits"] == 0):
                assert row["epsilon"] == pytest.approx(0) or row["epsilon"] == pytest.approx(paid)
            else:
                assert row["epsilon"] == pytest.approx(paid)
            uploads += row["epsilon"] > 0
            spent[client] += row["epsilon"]
    np.testing.assert_allclose(ledger.spent, spent)


def check_reports(rows, selector, clients):
    """A selector hears of deliveries and of waits, and never of what no server knows."""
    told = [pair for report in selector.reports for pair in zip(report.client, report.delivered, strict=True)]
    delivered = sum(1 for row in rows if row["outcome"] == "delivered")
    assert sum(1 for _, arrived in told if arrived) <= delivered
    for report in selector.reports:
        assert np.all(report.duration_s >= 0)
        assert report.client.size == report.delivered.size == report.loss.size
        if getattr(selector, "needs", ()):
            assert np.all(np.isnan(report.loss) | (report.loss == report.client))
    for view in selector.views:
        assert np.all(np.diff(view.client) > 0)
        assert view.client.size <= clients


def check_concurrency(rows, concurrency):
    """Never more at work than allowed."""
    for row in rows:
        there = sum(other["start_s"] <= row["start_s"] < other["end_s"] for other in rows if other is not row)
        assert there + 1 <= concurrency or row["start_s"] == row["end_s"]


@given(worlds())
def test_the_same_world_gives_the_same_history(world):
    arguments, options = world
    fresh = {**options, "learner": Labelling(np.full(len(arguments[1]), 10)), "selector": type(options["selector"])()}
    if "batteries" in options:
        return  # these have memory
    if "links" in options:
        links = options["links"]
        fresh["links"] = Pipe(links.down, links.up, down=links.rules[0], up=links.rules[1])
    first, second = run(world)[0], run((arguments, fresh))[0]
    assert first.participations.equals(second.participations)
    assert first.rounds.equals(second.rounds)


AGAIN = """
import sys
from fedsim import Scenario, simulate
changes = {"rounds.count": 4, "rounds.late": "stale", "selector.cohort": 8}
changes["devices.dropout"] = {"kind": "phase-hazard", "downlink_per_s": 0, "compute_per_s": 0.3, "uplink_per_s": 0.3}
history = simulate(Scenario.load(sys.argv[1]).replace(changes), store=False)
print([table.to_pylist() for table in (history.participations, history.rounds, history.evaluations)])
"""


@pytest.mark.slow
def test_a_run_that_learns_in_private_is_the_same_in_another_process_under_another_hash_seed():
    first, second = (
        subprocess.run(  # noqa: S603
            [sys.executable, "-c", AGAIN, str(ROOT / "scenarios" / "private.toml")],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "77")
    )
    assert "stale-used" in first
    assert first == second
