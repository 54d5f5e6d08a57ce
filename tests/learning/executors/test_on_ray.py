"""Trainings by actors of a Ray cluster of two nodes on loopback: the tables are those of this machine alone."""

import os
import signal
import threading
import time

import pytest

from fedsim import Scenario, simulate
from fedsim.errors import FedsimError
from tests.support.clusters import running, two_nodes
from tests.support.pages import ROOT

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore"),  # Ray's own, of its sockets and settings
]
ray = pytest.importorskip("ray", reason="the extra 'ray' is not installed")
BASE = Scenario.load(ROOT / "scenarios" / "quickstart.toml").replace({"rounds.count": 4})


@pytest.fixture
def cluster():
    with two_nodes(num_gpus=1) as found:
        yield found


def same(one, other):
    return one.tables() == other.tables()


def test_tables_are_those_of_the_sequential_executor(cluster, monkeypatch):
    alone = simulate(BASE, executor="sequential", store=False)
    spread = simulate(BASE, executor="ray", store=False)
    assert same(spread, alone)
    monkeypatch.setenv("FEDSIM_RAY_ACTORS", "1")
    assert same(simulate(BASE, executor="ray", store=False), alone)


@pytest.mark.parametrize("gone", ["worker", "node"])
def test_an_actor_or_a_node_that_goes_is_survived(gone, cluster):
    nodes, second = cluster
    longer = BASE.replace({"rounds.count": 30})
    ended = []

    def end():
        while len(running("Worker.compute")) < 2:
            time.sleep(0.002)
        if gone == "node":
            nodes.remove_node(second, allow_graceful=False)
        else:
            os.kill(running("Worker")[0], signal.SIGKILL)
        ended.append(gone)

    killing = threading.Thread(target=end, daemon=True)
    killing.start()
    spread = simulate(longer, executor="ray", store=False)
    assert ended, "it has ended a process while clients trained"
    assert same(spread, simulate(longer, executor="sequential", store=False))


def test_shares_of_a_gpu_place_several_actors_on_one(cluster, monkeypatch):
    """Two halves of the one GPU that the first node states to have; torch finds none there, and says so."""
    monkeypatch.setenv("FEDSIM_RAY_GPUS", "0.5")
    with pytest.raises(FedsimError, match="CUDA devices here"):
        simulate(BASE, executor="ray", device="cuda", store=False)
    assert ray.available_resources().get("GPU", 0.0) == 0.0


def test_options_that_are_none_are_refused(cluster, monkeypatch):
    monkeypatch.setenv("FEDSIM_RAY_GPUS", "0.5")
    with pytest.raises(FedsimError, match="allowed: 0 with 'cpu'"):
        simulate(BASE, executor="ray", store=False)
    monkeypatch.setenv("FEDSIM_RAY_GPUS", "half")
    with pytest.raises(FedsimError, match="must be a number"):
        simulate(BASE, executor="ray", device="cuda", store=False)
    with pytest.raises(FedsimError, match="allowed: 'cpu', 'cuda'"):
        simulate(BASE, executor="ray", device="tpu", store=False)
