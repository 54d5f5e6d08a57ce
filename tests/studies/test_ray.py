"""Studies on a Ray cluster of two nodes on loopback; workers and nodes may go."""

import os
import signal
import threading
import time

import pytest

from fedsim import Scenario, Study, sweep
from fedsim.errors import FedsimError
from tests.support.clusters import running, two_nodes
from tests.support.hand_made import by_hand

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore"),  # Ray's own, of its sockets and settings
]
ray = pytest.importorskip("ray", reason="the extra 'ray' is not installed")
BASE = Scenario(**by_hand(results={})).replace({"rounds.count": 60})
STUDY = Study.of(BASE, grid={"selector.cohort": [1, 3]}, seeds=8, metrics=["mean_round_s"])


@pytest.fixture
def cluster():
    with two_nodes() as found:
        yield found


def here(folder):
    return sweep(STUDY, out=folder, quiet=True, jobs=1)


def test_tables_and_digests_are_those_of_this_machine(cluster, tmp_path):
    there = sweep(STUDY, out=tmp_path / "ray", on="ray", quiet=True)
    assert there.failures == {}
    assert there.table() == here(tmp_path / "here").table()
    assert there["cohort=3", 5].tables() == here(tmp_path / "here")["cohort=3", 5].tables()


@pytest.mark.parametrize("gone", ["worker", "node"])
def test_a_worker_or_a_node_that_goes_is_survived(gone, cluster, tmp_path):
    nodes, second = cluster
    longer = STUDY.base.replace({"rounds.count": 600})
    study = Study.of(longer, grid={"selector.cohort": [1, 3]}, seeds=4, metrics=["mean_round_s"])

    def end():
        while not (tmp_path / "ray" / "index.jsonl").exists():
            time.sleep(0.05)
        if gone == "node":
            nodes.remove_node(second, allow_graceful=False)
            return
        while not (busy := running("run_pack")):
            time.sleep(0.01)
        os.kill(busy[0], signal.SIGKILL)

    killing = threading.Thread(target=end, daemon=True)
    killing.start()
    there = sweep(study, out=tmp_path / "ray", on="ray", quiet=True)
    assert not killing.is_alive(), "it has ended a process while packs were left"
    assert there.failures == {}
    assert there.table() == sweep(study, out=tmp_path / "here", quiet=True, jobs=2).table()


def test_an_engine_that_is_none_is_refused():
    with pytest.raises(FedsimError, match="allowed: processes, ray, ray:ADDRESS"):
        sweep(STUDY, on="slurm")
