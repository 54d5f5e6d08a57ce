"""Noise at the server: its scale through whole runs, what the tables say of it, and what does not go with it."""

import math

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy import stats

from fedsim import Scenario, simulate
from fedsim.errors import ScenarioError
from fedsim.privacy import CoordinateClampLaplace, L1ClippedLaplace, L2ClippedGaussian, NoiseAtServer
from fedsim.privacy.central import largest_weight
from fedsim.privacy.gaussian import noise_multiplier
from fedsim.scenario.building import build_context
from fedsim.simulation import Simulation
from tests.support.bounds import dkw

CLIP, EPSILON, DELTA = 0.3, 2.0, 1e-5
NUMBERS = 64 * 64 + 64 + 64 * 10 + 10
"""Of the model: 64 pixels, 64 hidden units, 10 digits."""
KS_LIMIT = dkw(NUMBERS, 1e-5)
GAUSSIAN = {"kind": "gaussian", "clip": CLIP, "delta": DELTA}
BASE = Scenario(
    name="central",
    crowd={"clients": 4},
    learning={"data": {"kind": "digits", "train_limit": 160}, "model": {"kind": "mlp", "hidden": [64]}},
    network="pause-two-speed",
    rounds={"count": 1, "weights": "uniform"},
    selector="all",
    privacy={"budget": {"kind": "unlimited", "epsilon": EPSILON}, "mechanism": GAUSSIAN, "where": "server"},
    results={"evaluate_start": False},
)
EDGES = {"grouping": {"kind": "order", "count": 2}, "backhaul": "none"}
SIGMA = CLIP * noise_multiplier(EPSILON, DELTA)
"""Standard deviation of the noise of a sum of clipped updates with weights of 1."""


def final(scenario):
    """Return the numbers of a run's last model."""
    simulation = Simulation(scenario, store=False)
    simulation.run()
    arrays = simulation.trained().arrays
    return np.concatenate([np.asarray(arrays[name], dtype=np.float64).ravel() for name in sorted(arrays)])


def noise_of(scenario):
    """Return how far the noise has moved the last model: the same run with next to no noise is subtracted."""
    quiet = scenario.replace({"privacy.budget.epsilon": 1e12})
    return final(scenario) - final(quiet)


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("changes", "law"),
    [
        ({}, stats.norm(scale=SIGMA / 4)),
        # At each of two edge servers a mean of two; the cloud's mean halves the sum of both noises.
        ({"rounds.edges": EDGES}, stats.norm(scale=SIGMA / 2 / math.sqrt(2))),
        # The first update of an asynchronous server, mixed in with 0.6.
        (
            {"rounds.policy": {"kind": "fedasync", "concurrency": 4, "mixing": 0.6}, "rounds.weights": "samples"},
            stats.norm(scale=0.6 * SIGMA),
        ),
        ({"privacy.mechanism": {"kind": "laplace-l1", "clip": CLIP}}, stats.laplace(scale=CLIP / EPSILON / 4)),
        # Local noise: of each client, for twice the clipping norm; the mean of four.
        ({"privacy.where": "client"}, stats.norm(scale=2 * SIGMA / 2)),
        (
            {
                "privacy.where": "client",
                "crowd.clients": 1,
                "privacy.mechanism": {"kind": "laplace-coordinate", "delta_f": 0.1},
            },
            stats.laplace(scale=0.1 / EPSILON),
        ),
    ],
    ids=["server", "edges", "fedasync", "laplace-l1", "local", "local laplace-coordinate"],
)
def test_noise_through_a_whole_run_has_its_scale(changes, law):
    noise = noise_of(BASE.replace(changes))
    assert noise.size == NUMBERS
    assert stats.kstest(noise, law.cdf).statistic < KS_LIMIT
    assert abs(np.corrcoef(noise[:-1], noise[1:])[0, 1]) < 5 / math.sqrt(NUMBERS)


def test_the_tables_state_the_noise_of_each_aggregate():
    history = simulate(BASE.replace({"rounds.count": 3}))
    rows = history.releases.to_pylist()
    of_clients = [row for row in rows if row["client"] is not None]
    of_server = [row for row in rows if row["client"] is None]
    assert [(row["round"], row["client"], row["number"]) for row in of_clients] == [
        (number, client, number) for number in (1, 2, 3) for client in range(4)
    ]
    assert "clients' updates reach the server clipped and without noise" in history.notes[0]
    assert all(row["noise_scale"] is None and row["clipping_norm"] == CLIP for row in of_clients)
    assert [row["spent"] for row in of_clients] == [EPSILON * row["number"] for row in of_clients]
    assert [row["round"] for row in of_server] == [1, 2, 3]
    for row in of_server:
        assert (row["epsilon"], row["clipping_norm"], row["spent"]) == (EPSILON, CLIP, None)
        assert row["sensitivity"] == pytest.approx(CLIP / 4)
        assert row["noise_scale"] == pytest.approx(SIGMA / 4)


def test_each_edge_server_states_its_own():
    rows = simulate(BASE.replace({"rounds.edges": EDGES})).releases.to_pylist()
    found = [(row["edge"], row["sensitivity"]) for row in rows if row["client"] is None]
    assert found == [(0, CLIP / 2), (1, CLIP / 2)]


def test_a_buffer_of_an_asynchronous_server_has_the_weight_of_its_updates():
    policy = {"kind": "fedbuff", "concurrency": 4, "buffer": 2}
    changes = {"rounds.policy": policy, "rounds.count": 6, "rounds.weights": "samples"}
    history = simulate(BASE.replace(changes))
    weights = {}
    for row in history.participations.to_pylist():
        if row["served_round"] is not None:
            of_round = weights.setdefault(row["served_round"], {})
            of_round[row["client"]] = of_round.get(row["client"], 0.0) + row["weight"]
    stated = {row["round"]: row["sensitivity"] for row in history.releases.to_pylist() if row["client"] is None}
    assert stated == pytest.approx({number: CLIP * max(of.values()) for number, of in weights.items()})


def test_the_server_optimizer_steps_with_the_noised_mean():
    adam = BASE.replace({"learning.server": "fedadam"})
    assert np.abs(noise_of(adam)).max() > 1e-4
    assert np.array_equal(final(adam), final(adam)), "the same seed"


def test_a_fixed_denominator_is_that_of_the_whole_crowd():
    """Poisson sampling at 0.9 of 40: weights of 1 / 36 each, whoever is drawn; all clients pay for each round."""
    sampled = BASE.replace(
        {
            "crowd.clients": 40,
            "learning": {"kind": "none", "model_bits": 1e5, "samples_per_client": 10},
            "selector": {"kind": "poisson", "rate": 0.5},
            "rounds.weights": "sum",
            "rounds.count": 4,
            "privacy.composition": {"kind": "rdp", "delta": 1e-5},
            "privacy.amplification": "poisson",
        }
    )
    pytest.importorskip("dp_accounting", reason="the extra 'dp' is not installed")
    history = simulate(sampled)
    assert len(set(history.column("rounds", "selected").tolist())) > 1
    of_server = [row for row in history.releases.to_pylist() if row["client"] is None]
    assert [row["sensitivity"] for row in of_server] == pytest.approx([CLIP / 20] * 4)
    spent = {row["round"]: row["spent"] for row in history.releases.to_pylist() if row["client"] is not None}
    assert list(spent.values()) == history.column("rounds", "largest_leakage").tolist()
    alone = simulate(sampled.replace({"privacy.amplification": "none"}))
    assert alone.column("releases", "spent")[0] > spent[1], "without amplification a part in a round costs more"


@pytest.mark.parametrize(
    "mechanism",
    [L2ClippedGaussian(clip=2.0, delta=1e-4), L1ClippedLaplace(clip=2.0), CoordinateClampLaplace(delta_f=4.0)],
)
def test_what_is_stated_of_an_aggregate_by_hand(mechanism):
    """Client 5 is in it twice, with 0.25 + 0.5: updates of at most 2 move it by 1.5; the least epsilon decides."""
    noise = NoiseAtServer(mechanism=mechanism).noise_of([3.0, 1.0, 2.0], [5, 7, 5], [0.25, 0.6, -0.5])
    assert (noise.epsilon, noise.clipping_norm, noise.sensitivity) == (1.0, 2.0, 1.5)
    multiplier = noise_multiplier(1.0, 1e-4) if mechanism.delta else 1.0
    assert noise.scale == pytest.approx(1.5 * multiplier)


@given(st.lists(st.tuples(st.integers(0, 3), st.floats(-2, 2)), min_size=1))
def test_the_largest_weight_is_that_of_a_plain_loop(updates):
    sums = {}
    for client, weight in updates:
        sums[client] = sums.get(client, 0.0) + abs(weight)
    client, weight = zip(*updates, strict=True)
    assert largest_weight(client, weight) == pytest.approx(max(sums.values()))


def test_the_share_of_clipped_updates_is_counted():
    """By the norms of the updates of a run without privacy, whose first round trains the same."""
    norms = np.sort(np.linalg.norm(first_updates(), axis=1))
    for count, clip in enumerate([norms[0] / 2, *((norms[1:] + norms[:-1]) / 2).tolist(), norms[3] * 2]):
        changes = {"privacy.mechanism.clip": float(clip), "results.noise_to_signal": True}
        history = simulate(BASE.replace(changes), store=False)
        assert history.column("rounds", "clipped_share").tolist() == [(4 - count) / 4]


def first_updates():
    """Return the updates of the first round of a run without privacy, which trains the same, shape (4, d)."""
    learner = build_context(BASE.replace({"privacy": None}), store=False).learner
    return learner.measure(learner.updates(learner.initial(), np.arange(4)), ("update",))["update"].astype(float)


def clipped_to(length, update, order):
    norm = np.abs(update).sum() if order == 1 else np.sqrt(np.square(update).sum())
    return update * min(1.0, length / norm)


LAPLACE = {"privacy.mechanism": {"kind": "laplace-l1", "clip": CLIP}}


@pytest.mark.parametrize(
    ("changes", "order", "variance", "aggregates"),
    [
        ({}, 2, SIGMA**2, [[0, 1, 2, 3]]),
        (LAPLACE, 1, 2 * (CLIP / EPSILON) ** 2, [[0, 1, 2, 3]]),
        ({"rounds.edges": EDGES}, 2, SIGMA**2, [[0, 1], [2, 3]]),
        ({**LAPLACE, "rounds.edges": EDGES}, 1, 2 * (CLIP / EPSILON) ** 2, [[0, 1], [2, 3]]),
    ],
    ids=["gaussian", "laplace", "gaussian, edges", "laplace, edges"],
)
def test_the_noise_of_a_server_over_the_signal_is_that_of_its_aggregates(changes, order, variance, aggregates):
    """By hand: each number has noise of that variance times the square of a client's weight in a mean."""
    history = simulate(BASE.replace({**changes, "results.noise_to_signal": True}), store=False)
    updates = [clipped_to(CLIP, update, order) for update in first_updates()]
    noise = sum(NUMBERS * variance / len(clients) ** 2 for clients in aggregates)
    signal = sum(np.square(np.mean([updates[i] for i in clients], axis=0)).sum() for clients in aggregates)
    assert history.column("rounds", "noise_to_signal").tolist() == pytest.approx([noise / signal], rel=1e-4)


def test_an_asynchronous_server_states_it_by_the_weights_and_the_least_epsilon_of_its_first_buffer():
    """Terms of a budget that falls: the noise is that of the smallest in the buffer, for the largest weight."""
    changes = {
        "privacy.budget": {"kind": "geometric", "epsilon": 9.0, "eta": 0.7},
        "rounds.policy": {"kind": "fedbuff", "concurrency": 4, "buffer": 3},
        "rounds.weights": "samples",
        "rounds.count": 6,
        "results.noise_to_signal": True,
        **LAPLACE,
    }
    history = simulate(BASE.replace(changes), store=False)
    rows = [row for row in history.participations.to_pylist() if row["served_round"] is not None]
    base = [row for row in rows if row["served_round"] == 1]
    updates = first_updates()
    summed = sum(row["weight"] * clipped_to(CLIP, updates[row["client"]], 1) for row in base)
    ratio = history.column("rounds", "noise_to_signal")
    noise = {}
    for number in range(1, 7):
        mine = [row for row in rows if row["served_round"] == number]
        largest = max(sum(row["weight"] for row in mine if row["client"] == one) for one in range(4))
        noise[number] = NUMBERS * 2 * (largest * CLIP / min(row["epsilon"] for row in mine)) ** 2
    assert ratio[0] == pytest.approx(noise[1] / np.square(summed).sum(), rel=1e-4)
    assert any(len({row["epsilon"] for row in rows if row["served_round"] == number}) > 1 for number in range(1, 7))
    signal = np.array(list(noise.values())) / ratio
    assert (np.sqrt(signal) <= [CLIP * sum(r["weight"] for r in rows if r["served_round"] == n) for n in noise]).all()


MEDIAN = {"learning.aggregation": "median", "rounds.minimum_updates": 3}
AMPLIFIED = {
    "crowd.clients": 60,
    "selector": {"kind": "poisson", "rate": 0.5},
    "rounds.weights": "sum",
    "privacy.composition": "rdp",
    "privacy.amplification": "poisson",
}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"rounds.weights": "samples"}, "rounds.weights: 'samples' is not allowed; .* allowed: 'uniform', or 'sum'"),
        (
            {"rounds.policy": {"kind": "pisces", "concurrency": 2}, "rounds.weights": "samples"},
            "rounds.policy: 'pisces'",
        ),
        (
            {"rounds.policy": {"kind": "safa", "share": 0.5, "max_wait_s": 5.0}, "rounds.weights": "samples"},
            "rounds.policy: 'safa' is not allowed; .* allowed: 'fedasync', 'fedbuff', or a policy of one cohort",
        ),
        (MEDIAN, "learning.aggregation: 'median' is not allowed; .* allowed: 'mean'"),
        ({"learning.compression": {"kind": "top-k", "share": 0.1}}, "learning.compression: 'top-k' is not allowed"),
        ({"learning.algorithm": "heterofl"}, "learning.algorithm: 'heterofl' is not allowed"),
        ({"selector": {"kind": "divfl", "cohort": 2}}, "selector: 'divfl' is not allowed; it measures updates"),
        (
            {
                "rounds.policy": {"kind": "deadline", "deadline_s": 2.0},
                "rounds.late": {"kind": "stale", "weight": "deviation"},
            },
            "rounds.late.weight: 'deviation' is not allowed",
        ),
        (
            {"selector": {"kind": "poisson", "rate": 0.5}},
            "rounds.weights: 'uniform' is not allowed; .* fixed denominator",
        ),
        ({**AMPLIFIED, "selector": "all", "rounds.weights": "uniform"}, "'all' does not draw each client by itself"),
        ({**AMPLIFIED, "crowd.clients": 4}, "a round without clients has a chance of 0.062"),
        (
            {**AMPLIFIED, "rounds.policy": {"kind": "k-fastest", "k": 3}},
            "rounds.policy = 'k-fastest' takes clients by the arrivals of others",
        ),
        ({**AMPLIFIED, "rounds.edges": EDGES}, "rounds of this server share clients"),
        *[
            (
                {"selector": {"kind": "fedsampling", "samples": 40}, "rounds.weights": weights},
                r"(?s)^(?!.*rounds\.weights).*selector: 'fedsampling' is not allowed; .* \(privacy.where = 'server'\) "
                ".*allowed: privacy.where = 'client'",
            )
            for weights in ("samples", "uniform", "sum")
        ],
    ],
)
def test_what_an_aggregate_may_not_depend_on_is_refused_in_words(changes, message):
    with pytest.raises(ScenarioError, match=message):
        BASE.replace(changes)


def test_a_selector_that_prescribes_weights_is_refused_by_its_name():
    scenario = BASE.replace({"selector": {"kind": "weighted", "cohort": 2}})
    with pytest.raises(ScenarioError, match=r"selector: WeightedSampling .* \(privacy.where = 'server'\) .* 'client'"):
        simulate(scenario)
