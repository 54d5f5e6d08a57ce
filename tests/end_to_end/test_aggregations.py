"""Robust aggregations in whole runs: on flat, buffered and edge servers, and what is refused before work starts."""

from typing import Any

import numpy as np
import pytest

from fedsim import simulate
from fedsim.errors import ScenarioError
from fedsim.learning.aggregation.robust import Median
from tests.support.plain_learner import Halving, half_way_learner, updates
from tests.support.short_runs import DIGITS, losses

SCENARIO = DIGITS.replace(
    {
        "crowd.clients": 8,
        "learning.split": {"kind": "sizes", "samples": [40, 40, 30, 30, 20, 20, 10, 10]},
        "learning.aggregation": "median",
        "rounds.minimum_updates": 3,
        "selector.cohort": 5,
        "results.audit": True,
    }
)
BUFFER = {"rounds.policy": {"kind": "fedbuff", "concurrency": 5, "buffer": 3}, "rounds.minimum_updates": 1}
EDGES = {"rounds.edges": {"grouping": {"kind": "order", "count": 2}, "backhaul": "none", "server": "fedyogi"}}
STALE = {"rounds.policy": {"kind": "deadline", "deadline_s": 0.25}, "rounds.late": "stale"}


@pytest.mark.parametrize("changes", [{}, BUFFER, EDGES, STALE], ids=["all", "buffer", "edges", "stale"])
def test_a_rule_runs_on_every_server(changes: dict[str, Any]) -> None:
    scenario = SCENARIO.replace(changes)
    first = losses(scenario)
    assert losses(scenario.replace({"learning.aggregation": "mean"})) != first
    krum = {"learning.aggregation": {"kind": "krum", "byzantine": 0}}
    adaptive = {"learning.server": {"kind": "fedadam", "learning_rate": 0.05}}
    assert losses(scenario.replace({**krum, **adaptive})) not in (first, losses(scenario.replace(krum)))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"rounds.minimum_updates": 2},
            "rounds.minimum_updates: 2 is not allowed; learning.aggregation = 'median' needs at least 3",
        ),
        ({"selector.cohort": 2}, "selector.cohort: 2 is not allowed; learning.aggregation = 'median' needs at least 3"),
        (
            {"learning.aggregation": {"kind": "krum", "byzantine": 2}, "rounds.minimum_updates": 7},
            "selector.cohort: 5 is not allowed; learning.aggregation = 'krum' needs at least 7",
        ),
        (
            {"rounds.policy": {"kind": "fedasync", "concurrency": 3}, "rounds.minimum_updates": 1},
            "rounds.policy: 'fedasync' is not allowed; learning.aggregation = 'median' needs at least 3 updates, and "
            "this policy aggregates 1 at a time",
        ),
        (
            {"rounds.policy": {"kind": "safa", "share": 0.5, "max_wait_s": 1.0}, "selector": "all"},
            "learning.aggregation: 'median' is not allowed; it needs the updates of clients at once",
        ),
        (
            {"learning.algorithm": "scaffold"},
            "learning.aggregation: 'median' is not allowed with algorithm = 'scaffold', whose server adds updates up",
        ),
    ],
)
def test_what_cannot_be_is_refused_in_words_before_work_starts(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ScenarioError) as refused:
        SCENARIO.replace(changes)
    assert words in str(refused.value)


def test_weights_scale_the_step_and_a_weight_of_zero_leaves_an_update_out() -> None:
    targets = [(4.0, 0.0), (8.0, 0.0), (6.0, 0.0), (1000.0, 0.0)]
    learner, _ = half_way_learner(targets, aggregation=Median(), server=Halving())
    start = learner.initial()
    cohort = updates(learner, start, 0, 1, 2, 3)
    # Three updates of 2, 4 and 3 with weights of sum 0.5: half of their median, and Halving steps half of that.
    half = learner.aggregate(start, cohort, np.array([0.125, 0.125, 0.25, 0.0]))
    assert learner.vector(half).tolist() == [0.75, 0, 0.5]
    for weights in ([0.0, 0.0, 0.0, 0.0], [0.5, 0.5, 0.0, 0.0]):
        assert learner.aggregate(start, cohort, np.array(weights)) is start, "fewer than three have a weight"
    with pytest.raises(ScenarioError, match=r"takes no update with a weight below 0, here -0\.5"):
        learner.aggregate(start, cohort, np.array([0.5, 0.5, 0.5, -0.5]))


def test_whole_models_of_stale_clients_are_compared_with_the_servers() -> None:
    learner, _ = half_way_learner([(4.0, 0.0), (0.0, 8.0), (8.0, 8.0)], aggregation=Median())
    start = learner.initial()
    stale = updates(learner, start, 0, 1, 2)  # whole models (2, 0), (0, 4), (4, 4)
    model = learner.aggregate(start, stale, np.full(3, 1 / 3))
    assert learner.vector(model).tolist() == [2, 4, 1]
    # From (2, 4) they are (0, -4), (-2, 0) and (2, 0) away: the median is (0, 0), and the buffer's 1 - 1.
    assert learner.vector(learner.aggregate(model, stale, np.full(3, 1 / 3), of="model")).tolist() == [2, 4, 1]
    assert learner.vector(learner.aggregate(model, stale, np.full(3, 1 / 3))).tolist() == [4, 8, 2]


def test_a_round_with_too_few_weights_ends_without_a_new_model() -> None:
    """Clients 0 to 3 have no weight: a cohort of five has at most four others, and a median needs three."""
    given = {"rounds.weights": {"kind": "given", "weight": [0.0] * 4 + [1.0] * 4}, "rounds.count": 12}
    history = simulate(SCENARIO.replace(given))
    weighted = np.zeros(12, dtype=int)
    rows = history.participations
    for number, client in zip(rows.column("round").to_pylist(), rows.column("client").to_pylist(), strict=True):
        weighted[number - 1] += client >= 4
    assert 0 < np.count_nonzero(weighted < 3) < 12
    versions = history.column("rounds", "model_version")
    assert versions.tolist() == np.cumsum(weighted >= 3).tolist()
    discarded = {row["round"] for row in rows.to_pylist() if row["fate"] == "wasted-unmerged"}
    assert discarded == set((np.flatnonzero(weighted < 3) + 1).tolist())


def test_a_buffer_of_discounts_that_are_zero_makes_no_model() -> None:
    """exp(-1000) is 0 in floating point: a buffer with a stale update has fewer than three that count."""
    law = {"kind": "exponential", "a": 1000.0}
    buffer = {**BUFFER["rounds.policy"], "staleness": law}
    history = simulate(SCENARIO.replace({**BUFFER, "rounds.policy": buffer, "rounds.count": 8}))
    versions = history.column("rounds", "model_version")
    assert versions[0] == 1
    assert versions[-1] < 8
    for row in history.participations.to_pylist():
        assert row["staleness"] in (0, None), "a stale update was used"


@pytest.mark.parametrize("weight", [0.0, [0.0] * 8, {"kind": "uniform", "least": 0.0, "greatest": 0.0}])
def test_weights_that_are_all_zero_are_refused(weight: Any) -> None:
    given = {"rounds.weights": {"kind": "given", "weight": weight}}
    with pytest.raises(ScenarioError, match=r"rounds\.weights\.weight: .*the weights of all clients are 0"):
        simulate(SCENARIO.replace(given))
