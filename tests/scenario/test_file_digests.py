"""The files that a scenario reads belong to its digest."""

import hashlib
import json

import pytest

from fedsim import Scenario
from tests.support.short_runs import timed

POLICY = {"kind": "deadline", "deadline_s": 1.0}
SCENARIO = timed(clients=2, bits=8.0, samples=1, network="cell", rounds={"count": 1, "policy": POLICY})
GRAPH = {
    "kind": "graph",
    "topology": {"kind": "star", "backhaul": {"capacity_bps": 1.0, "delay_s": 0.0}},
    "access": {"downlink_bps": 1.0, "uplink_bps": 1.0, "delay_s": 0.0},
}


@pytest.mark.parametrize(
    ("field", "changes"),
    [
        ("crowd.placement.path", {"crowd.placement": {"kind": "file", "path": "input"}}),
        ("network.topology.path", {"network": {"kind": "graph", "topology": {"kind": "file", "path": "input"}}}),
        ("network.mobility.path", {"network": {**GRAPH, "mobility": {"kind": "trace", "path": "input"}}}),
        ("network.path", {"network": {"kind": "fedscale", "path": "input"}}),
        ("devices.availability.path", {"devices.availability": {"kind": "traces", "path": "input"}}),
    ],
)
def test_the_digest_follows_what_is_in_a_file(tmp_path, monkeypatch, field, changes):
    monkeypatch.chdir(tmp_path)
    path, scenario = tmp_path / "input", SCENARIO.replace(changes)
    assert scenario.files() == {field: "unreadable"}
    digests = [scenario.digest()]
    for text in ("one", "two"):
        path.write_text(text)
        assert scenario.files() == {field: hashlib.sha256(text.encode()).hexdigest()}
        digests.append(scenario.digest())
    assert len(set(digests)) == 3
    path.write_text("one")
    assert scenario.digest() == digests[1]
    assert Scenario.from_toml(scenario.to_toml()).digest() == digests[1]


def test_without_files_the_digest_is_that_of_the_description():
    scenario = SCENARIO
    assert scenario.files() == {}
    text = json.dumps(scenario.describe(), sort_keys=True, separators=(",", ":"))
    assert scenario.digest() == hashlib.sha256(text.encode()).hexdigest()
