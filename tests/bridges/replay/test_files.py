"""The files of a replay, against a run worked by hand; and by SimGrid, where it is installed."""

import csv
import subprocess
from pathlib import Path

import numpy as np
import pytest

from fedsim import Scenario, simulate
from fedsim.bridges.replay import flows_of, write_replay
from fedsim.errors import RunError, ScenarioError

REPLAY = Path(__file__).parents[3] / "scenarios" / "simgrid" / "replay.py"

# Two clients 1.5 s from the cloud. Down: 2 bit/s each of the wire's 4, so 8 bits are sent in 4 s. Up: client 0 has a
# link of 1 bit/s and sends for 8 s; client 1 has the other 3 bit/s of the wire and sends for 8/3 s.
STAR = {
    "name": "star",
    "crowd": {"clients": 2},
    "learning": {"kind": "none", "model_bits": 8.0, "samples_per_client": 1},
    "network": {
        "kind": "graph",
        "topology": {"kind": "star", "backhaul": {"capacity_bps": 4.0, "delay_s": 1.0}},
        "access": {"kind": "constant", "downlink_bps": 16.0, "uplink_bps": [1.0, 4.0], "delay_s": 0.5},
    },
    "devices": {"compute": "zero"},
    "rounds": {"count": 1, "policy": "wait-for-all"},
    "selector": {"kind": "all"},
}
OUTAGES = {
    "count": 1,
    "policy": {"kind": "deadline", "deadline_s": 9.0},
    "faults": {"link_outage": {"mean_up_s": 100.0, "mean_down_s": 1.0}},
}
FLOWS = """\
flow,round,client,direction,source,target,start_s,bits,delay_s,end_s,whole
0,1,0,down,cloud,client-0,0.0,8.0,1.5,5.5,1
1,1,1,down,cloud,client-1,0.0,8.0,1.5,5.5,1
2,1,0,up,client-0,cloud,5.5,8.0,1.5,15.0,1
3,1,1,up,client-1,cloud,5.5,8.0,1.5,9.666666666666666,1
"""
PLATFORM = """\
<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <zone id="fedsim" routing="Full">
    <host id="cloud" speed="1f" />
    <host id="client-0" speed="1f" />
    <host id="client-1" speed="1f" />
    <link id="cloud -&gt; bs-0" bandwidth="4.0bps" latency="1.0s" />
    <link id="bs-0 -&gt; cloud" bandwidth="4.0bps" latency="1.0s" />
    <link id="bs-0 -&gt; client-0" bandwidth="16.0bps" latency="0.5s" />
    <link id="client-0 -&gt; bs-0" bandwidth="1.0bps" latency="0.5s" />
    <link id="bs-0 -&gt; client-1" bandwidth="16.0bps" latency="0.5s" />
    <link id="client-1 -&gt; bs-0" bandwidth="4.0bps" latency="0.5s" />
    <route src="cloud" dst="client-0" symmetrical="NO">
      <link_ctn id="cloud -&gt; bs-0" />
      <link_ctn id="bs-0 -&gt; client-0" />
    </route>
    <route src="client-0" dst="cloud" symmetrical="NO">
      <link_ctn id="client-0 -&gt; bs-0" />
      <link_ctn id="bs-0 -&gt; cloud" />
    </route>
    <route src="cloud" dst="client-1" symmetrical="NO">
      <link_ctn id="cloud -&gt; bs-0" />
      <link_ctn id="bs-0 -&gt; client-1" />
    </route>
    <route src="client-1" dst="cloud" symmetrical="NO">
      <link_ctn id="client-1 -&gt; bs-0" />
      <link_ctn id="bs-0 -&gt; cloud" />
    </route>
  </zone>
</platform>
"""


def scenario(**changes):
    return Scenario.model_validate(STAR).replace(changes)


def written(folder, world, **options):
    write_replay(world, simulate(world), folder, **options)
    with (folder / "flows.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def test_files_of_a_star_by_hand(tmp_path):
    written(tmp_path, scenario())
    assert (tmp_path / "flows.csv").read_text() == FLOWS
    assert (tmp_path / "platform.xml").read_text() == PLATFORM
    without = PLATFORM.replace('latency="1.0s"', 'latency="0.0s"').replace('latency="0.5s"', 'latency="0.0s"')
    assert (tmp_path / "platform_without_delays.xml").read_text() == without


def test_a_relay_s_radio_stands_twice_in_a_route(tmp_path):
    """Of two clients in a row the farther one is relayed by the nearer one, whose radio receives and sends each bit."""
    hop = {"capacity_bps": 4.0, "delay_s": 0.0}
    mesh = {"kind": "mesh", "range_m": 100.0, "hop": hop, "radio_bps": 3.0, "backhaul": hop}
    places = {"kind": "given", "positions_m": [[80.0, 0.0], [160.0, 0.0]]}
    world = scenario(**{"network": {"kind": "graph", "topology": mesh}, "crowd.placement": places})
    written(tmp_path, world)
    text = (tmp_path / "platform.xml").read_text()
    route = text.split('<route src="client-1" dst="cloud"')[1].split("</route>")[0]
    assert route.count('id="radio of client-0"') == 2
    assert route.count('id="radio of client-1"') == route.count('id="radio of bs-0"') == 1
    assert '<link id="radio of client-0" bandwidth="3.0bps" latency="0.0s" />' in text


def test_a_cut_transfer_has_the_bits_that_were_carried(tmp_path):
    """After 9.5 s client 0 has sent 4 bits, and the last bit of client 1, on its way for 4/3 s, is given up too."""
    rows = written(tmp_path, scenario(**{"rounds.policy": {"kind": "deadline", "deadline_s": 9.5}}))
    up = [(float(row["bits"]), float(row["end_s"]), row["whole"]) for row in rows if row["direction"] == "up"]
    assert up == [(4.0, 9.5, "0"), (8.0, 9.5, "0")]


def test_rounds_are_chosen(tmp_path):
    rows = written(tmp_path, scenario(**{"rounds.count": 3}), rounds=(2, 2))
    assert [row["round"] for row in rows] == ["2"] * 4
    assert [float(row["start_s"]) for row in rows] == [15.0, 15.0, 20.5, 20.5]


def test_rounds_that_share_the_network_with_others_are_refused():
    """FedAsync sends a client anew while the other one is still on its way."""
    history = simulate(scenario(**{"rounds.policy": {"kind": "fedasync", "concurrency": 2}, "rounds.count": 6}))
    with pytest.raises(RunError, match="share the network with theirs"):
        flows_of(history, (2, 3))
    assert flows_of(history).bits.size >= 12


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"network": {"kind": "fedscale"}}, "no links to replay; allowed: kind = 'graph'"),
        ({"network.trouble": [{"kind": "outage-bursts", "mean_good_s": 4.0, "mean_bad_s": 1.0}]}, "network.trouble"),
        ({"network.transport": "tcp"}, "leave out network.transport"),
        ({"network.access": {"kind": "radio", "delay_s": 0.0}}, "links that fade have no constant capacity"),
        ({"network.access": {"kind": "radio", "delay_s": 0.0, "spectrum": "shared"}}, "network.access.spectrum"),
        ({"rounds": OUTAGES}, "rounds.faults.link_outage"),
    ],
)
def test_what_changes_during_a_run_is_refused(changes, words, tmp_path):
    world = scenario(**changes)
    with pytest.raises(ScenarioError, match=words):
        write_replay(world, simulate(scenario()), tmp_path)


def test_a_run_without_these_rounds_is_refused(tmp_path):
    with pytest.raises(RunError, match="no transfers with bits"):
        written(tmp_path, scenario(), rounds=(5, 6))


def simgrid_python():
    python = "/usr/bin/python3"
    if not Path(python).exists():
        return None
    found = subprocess.run([python, "-c", "import simgrid; simgrid.Engine"], capture_output=True, check=False)  # noqa: S603
    return python if found.returncode == 0 else None


def test_simgrid_ends_each_transfer_at_the_same_instant(tmp_path):
    """Its model CM02 shares links max-min fairly; with its own latencies, flows of one latency begin later by it."""
    python = simgrid_python()
    if python is None:
        pytest.skip("the system's Python has no SimGrid (apt install python3-simgrid)")
    rows = written(tmp_path, scenario())
    theirs = tmp_path / "ends.csv"
    plain = ["--set", "network/TCP-gamma:0", "network/crosstraffic:0"]
    for options in (["--delays", "after", "--finer"], ["--delays", "links"]):
        subprocess.run([python, REPLAY, tmp_path, theirs, *options, *plain], check=True, capture_output=True)  # noqa: S603
        with theirs.open(newline="") as file:
            ends_s = [float(row["end_s"]) for row in csv.DictReader(file)]
        np.testing.assert_allclose(ends_s, [float(row["end_s"]) for row in rows], rtol=1e-9)
