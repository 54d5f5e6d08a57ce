"""Scenarios as environments: what a step returns, by hand; Gymnasium's own checker; the same run as `simulate`."""

import importlib
import sys

import numpy as np
import pytest

gymnasium = pytest.importorskip("gymnasium", reason="the extra 'gym' is not installed")
from gymnasium.utils.env_checker import check_env  # noqa: E402

import fedsim.bridges.gymnasium as bridge  # noqa: E402
from fedsim import Scenario, simulate  # noqa: E402
from fedsim.bridges.gymnasium import COLUMNS, SELECTION, STRAGGLERS, SelectionEnv, Weights  # noqa: E402
from fedsim.errors import ScenarioError  # noqa: E402
from tests.support.hand_made import four  # noqa: E402
from tests.support.pages import ROOT  # noqa: E402

PRIVATE = Scenario.load(ROOT / "scenarios" / "private.toml")
OPTIONS = [{}, {"action": "members"}, {"bandwidth_hz": 1e6}, {"columns": COLUMNS}, {"normalised": False}]


def only(*clients, of=4):
    return np.isin(np.arange(of), clients).astype(np.int8)


def begun(scenario=None, **options):
    env = SelectionEnv(scenario or four(), **options)
    env.reset(seed=1)
    return env


@pytest.mark.parametrize("options", OPTIONS, ids=lambda options: "-".join(options) or "plain")
def test_gymnasiums_checker_accepts_it(options):
    env = gymnasium.make(STRAGGLERS, **options)
    check_env(env.unwrapped)
    env.close()


def test_steps_by_hand():
    """Clients 0 and 3 take 2 and 5 s, clients 0 and 1 take 2 and 3 s; the third round ends the episode."""
    env = SelectionEnv(four(), action="members", normalised=False)
    seen, info = env.reset(seed=1)
    assert (seen["round"], seen["time_s"]) == (1, 0)
    assert seen["candidate"].tolist() == info["action_mask"].tolist() == [1, 1, 1, 1]
    assert seen["last_duration_s"].tolist() == [-1] * 4
    seen, reward, terminated, truncated, info = env.step(only(0, 3))
    assert (reward, info["seconds"], info["time_s"]) == (-5, 5, 5)
    assert seen["last_duration_s"].tolist() == [2, -1, -1, 5]
    assert seen["participations"].tolist() == [1, 0, 0, 1]
    assert info["selected"].tolist() == info["delivered"].tolist() == [1, 0, 0, 1]
    assert not terminated
    assert not truncated
    assert env.step(only(0, 1))[1] == -3
    seen, reward, terminated, truncated, info = env.step(only(2))
    assert (reward, terminated, truncated, info["time_s"]) == (-4, False, True, 12)
    assert seen["candidate"].tolist() == [0, 0, 0, 0]
    assert env.history().column("participations", "client").tolist() == [0, 3, 0, 1, 2]
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step(only(0))


def test_late_clients_are_not_delivered():
    env = begun(four(**{"rounds.policy": {"kind": "deadline", "deadline_s": 3.5}}), action="members")
    _, reward, *_, info = env.step(only(1, 2, 3))
    assert reward == -3.5
    assert info["delivered"].tolist() == [0, 1, 0, 0]
    assert env.last.played.outcome.tolist() == ["delivered", "late", "late"]


def test_an_action_without_candidates_takes_no_time_and_counts():
    env = begun(action="members", reward=Weights(empty=-7.0))
    rewards = [env.step(only())[1:4] for _ in range(3)]
    assert rewards == [(-7, False, False), (-7, False, False), (-7, False, True)]
    assert env.last.played is None


def test_a_target_terminates_and_a_time_limit_truncates():
    learning = PRIVATE.replace({"rounds.target_accuracy": 0.2, "privacy": "none"})
    env = begun(learning, reward=Weights(second=0.0, accuracy=1.0, target=100.0))
    total, over = 0.0, False
    while not over:
        _, reward, terminated, truncated, info = env.step(np.linspace(1, -1, 30))
        total, over = total + reward, terminated or truncated
    assert (terminated, truncated) == (True, False)
    assert info["accuracy"] >= 0.2
    accuracy = env.history().column("evaluations", "accuracy")
    assert total == pytest.approx(100 + accuracy[-1] - accuracy[0])
    assert begun(four(**{"rounds.until_s": 4.0})).step(np.array([-1, -1, 1, 1]))[2:4] == (False, True)


def test_spent_budgets_terminate():
    """Each client has epsilon for one upload; after two rounds of two no client is a candidate, nor ever will be."""
    privacy = {
        "budget": {"kind": "uniform", "epsilon": 1.0, "releases": 1},
        "mechanism": {"kind": "laplace-coordinate", "delta_f": 0.1},
    }
    scenario = four(**{"privacy": privacy, "rounds.count": 9})
    env = begun(scenario, columns=("privacy_spent",), reward=Weights(second=0, epsilon=-1))
    seen, reward, *_ = env.step(np.array([1, 1, -1, -1]))
    assert reward == -1
    assert seen["candidate"].tolist() == [0, 0, 1, 1]
    _, reward, terminated, truncated, info = env.step(np.array([1, 1, -1, -1]))
    assert (reward, terminated, truncated, info["leakage"]) == (0, True, False, 1)


@pytest.mark.parametrize(
    "scenario",
    [
        PRIVATE.replace({"rounds.count": 4, "selector": {"kind": "uniform", "cohort": 5}}),
        PRIVATE.replace(
            {
                "rounds": {"count": 5, "policy": {"kind": "deadline", "deadline_s": 0.6}, "late": {"kind": "stale"}},
                "learning": {"kind": "none", "model_bits": 1e5, "samples_per_client": 60},
                "devices.availability": {"kind": "markov", "mean_on_s": 2.0, "mean_off_s": 2.0},
                "selector": {"kind": "uniform", "cohort": 5},
            }
        ),
    ],
    ids=["learning", "stale"],
)
def test_the_same_cohorts_make_the_same_run(scenario):
    plain = simulate(scenario, store=False)
    env = SelectionEnv(scenario, action="members")
    env.reset(seed=scenario.seed)
    rounds, clients = (plain.column("participations", name) for name in ("round", "client"))
    for number in range(1, scenario.rounds.count + 1):
        env.step(only(*clients[rounds == number], of=30))
    stepped = env.history()
    for name in ("participations", "rounds", "evaluations"):
        assert stepped.tables()[name].equals(plain.tables()[name]), name


def test_seeds():
    env = SelectionEnv(gymnasium.spec(STRAGGLERS).kwargs["scenario"])
    action = np.linspace(-1, 1, 40)

    def first(seed):
        _, info = env.reset(seed=seed)
        return info["seed"], env.step(action)[1]

    again = [first(5), first(None), first(None)]
    assert again == [first(5), first(None), first(None)]
    assert len(set(again)) == 3


def test_options_change_one_episode():
    env = SelectionEnv(four())
    env.reset(seed=1, options={"scenario": {"network.downlink.value_s": 2.0}})
    assert env.step(np.array([1, 1, -1, -1]))[1] == -4
    env.reset(seed=1)
    assert env.step(np.array([1, 1, -1, -1]))[1] == -3


def test_several_environments_at_once():
    """Two copies of one crowd; the same clients take the same time, and clients 2 and 3 take longer than 0 and 1."""
    envs = gymnasium.make_vec(SELECTION, num_envs=2, scenario=four(), vectorization_mode="sync")
    seen, info = envs.reset(seed=[3, 3])
    assert seen["candidate"].shape == info["action_mask"].shape == (2, 4)
    _, rewards, _, _, info = envs.step(np.array([[1, 1, -1, -1], [-1, -1, 1, 1]], dtype=np.float32))
    assert rewards.tolist() == [-3, -5]
    assert info["selected"].tolist() == [[1, 1, 0, 0], [0, 0, 1, 1]]
    envs.close()


def test_a_user_s_own_reward():
    env = begun(reward=lambda step: step.first_deliveries - step.seconds / 10)
    rewards = [env.step(np.array(scores))[1] for scores in ([1, 1, -1, -1], [1, -1, -1, 1])]
    assert rewards == pytest.approx([2 - 0.3, 1 - 0.5])


@pytest.mark.parametrize(
    ("changes", "options", "words"),
    [
        ({"rounds.policy": {"kind": "fedasync", "concurrency": 2}}, {}, "rounds.policy: an asynchronous server"),
        ({}, {"cohort": 5}, "cohort: 5 is not allowed; it must be a whole number from 1 to 4"),
        ({}, {"columns": ("sample",)}, "it must name each at most once of samples, participations"),
        ({}, {"action": "ids"}, "action: 'ids' is not allowed; it must be one of scores, members"),
        ({}, {"bandwidth_hz": 0.0}, "bandwidth_hz: 0.0 is not allowed; it must be a number above 0"),
        ({"rounds.policy": {"kind": "k-fastest", "k": 1}}, {"action": "members"}, "allowed: 'scores'"),
    ],
)
def test_what_is_refused(changes, options, words):
    with pytest.raises(ScenarioError, match=words):
        SelectionEnv(four(**changes), **options)


def test_what_a_reset_refuses():
    with pytest.raises(ScenarioError, match="allowed: a cell with dedicated uplinks"):
        SelectionEnv(four(), bandwidth_hz=1e6).reset(seed=1)
    env = SelectionEnv(four())
    with pytest.raises(ScenarioError, match="options: 'seed' is not allowed; it must be 'scenario'"):
        env.reset(options={"seed": 3})
    with pytest.raises(ScenarioError, match="the spaces are of 4 clients"):
        env.reset(options={"scenario": {"crowd.clients": 5, "network.uplink_factor": 1.0}})
    for call in (env.history, lambda: env.step(only(0))):
        with pytest.raises(gymnasium.error.ResetNeeded):
            call()


def test_without_gymnasium_there_is_advice(monkeypatch):
    monkeypatch.setitem(sys.modules, "gymnasium", None)
    with pytest.raises(ImportError, match=r"pip install 'fedsim-des\[gym\]'"):
        importlib.reload(bridge)
