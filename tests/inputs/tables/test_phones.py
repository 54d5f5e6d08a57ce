"""Measurements of phones as they are published: made rows of the same layouts, with what they mean worked by hand."""

import json

import pytest

from fedsim.devices.availability.traces import Traces
from fedsim.errors import DataError
from fedsim.inputs.tables import reading
from fedsim.network.traces.files import RateFile
from fedsim.run_setup import RunSetup
from fedsim.streams import Streams
from tests.support.tables import there, written

A = (
    "2020-01-28 00:00:00\tscreen_lock\n2020-01-28 00:00:10\tbattery_charged_on\n2020-01-28 00:00:20\tWIFI\n"
    "2020-01-28 00:00:30\t80.0%\n2020-01-28 00:00:40\t4G\n2020-01-28 00:00:50\twifi\n2020-01-28 00:01:40\tscreen_off\n"
)
"""Locked, charging and on WiFi from 20 s to 40 s and from 50 s to the last message at 100 s."""
B = "2020-01-27 23:00:30\tscreen_lock\n2020-01-28 00:01:30\tscreen_unlock\n"
STATES = {"0": {"guid": "a", "model": "m", "messages": A}, "1": {"guid": "b", "model": "m", "messages": B}}
SINCE_S = 26 * 86_400
"""From FLASH's 2020-01-02 to the first message."""
CACHE = {
    "a": {
        "isSuccess": True,
        "trace_start": SINCE_S,
        "trace_end": SINCE_S + 100.0,
        "ready_time": [[SINCE_S + 20, SINCE_S + 40.0], [SINCE_S + 50, SINCE_S + 100]],
    },
    "b": {"isSuccess": False, "trace_start": None, "trace_end": None, "ready_time": []},
}
ROWS = "guid,time,state\n" + "".join(
    f"{guid},{line}\n".replace("\t", ",") for guid, text in (("a", A), ("b", B)) for line in text.splitlines()
)
CELLS = f'guid,model,messages\na,m,"{A}"\nb,m,"{B}"\n'


def online(path, times_s, **options):
    return there(path, 2, times_s, mapping="sequential", **options)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("t.json", json.dumps(STATES)),
        ("l.json", "\ufeff" + json.dumps([*STATES.values()])),
        ("c.json", json.dumps(CACHE)),
        ("r.csv", ROWS),
        ("r.parquet", ROWS),
        ("m.csv", CELLS),
    ],
    ids=["states", "states in a list", "cache", "a row for each state", "rows in Parquet", "a row for each device"],
)
def test_phones_of_flash_are_there_while_locked_charging_and_on_wifi(tmp_path, name, text):
    """Each repeats its own 100 s. A run that begins 1,040 s after the first message is 40 s into the eleventh time."""
    path = written(tmp_path / name, text)
    with reading() as run:
        from_first = online(path, [10, 25, 45, 60, 99, 110, 125], origin="2020-01-28T00:00:00" + "Z" * (name[0] == "c"))
        later = online(path, [0, 9, 11, 59, 61, 81], origin="2020-01-28T00:17:20" + "Z" * (name[0] == "c"))
    assert [one for one, _ in from_first] == [0, 1, 0, 1, 1, 0, 1]
    assert [one for one, _ in later] == [0, 0, 1, 1, 0, 1]
    assert not any(two for _, two in from_first + later)
    assert any("1 devices" in note for note in run.notes)
    # Without an origin the run begins with the first session.
    assert [one for one, _ in online(path, [0, 19, 21, 31, 79, 81, 101])] == [1, 1, 0, 1, 1, 0, 1]


@pytest.mark.parametrize("phones", [STATES, CACHE])
def test_a_phone_without_a_session_keeps_its_place(tmp_path, phones):
    path = written(tmp_path / "t.json", json.dumps(dict(reversed(phones.items()))))
    assert online(path, [0, 19, 21]) == [[0, 1], [0, 1], [0, 0]]
    none = written(tmp_path / "n.json", json.dumps(dict.fromkeys("01", STATES["1"])))
    assert online(none, [0], origin="2020-01-28T00:00:00") == [[0, 0]]


def test_a_session_that_is_as_long_as_the_time_of_its_device_never_ends(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("device,start,end,period_s\n0,2020-01-28T00:00:30,2020-01-28T00:02:10,100\n")
    assert online(path, [0, 50, 99, 150], origin="2020-01-28T00:00:00") == [[1, 1]] * 4


def measurement(speeds, up, **other):
    parameters = {"type": "tcpthroughput", "dir_up": up, "sample_period_sec": 0.5}
    return {"type": "tcpthroughput", "parameters": parameters, "values": {"tcp_speed_results": speeds}, **other}


def test_mobiperf_has_rates_of_both_directions(tmp_path):
    """Two downlinks of 0.5 s a sample, one of which failed, an uplink, and a ping that has no rate."""
    path = tmp_path / "mobiperf.json"
    ping = {"type": "ping", "values": {"mean_rtt_ms": "31.5"}}
    entries = [
        measurement("[1000.0, 3000.0]", False, success=True),
        ping,
        measurement([2.0, 8000.0], True),
        measurement([5.0], "false", success=False),
    ]
    path.write_text(json.dumps(entries))
    with reading() as run:
        down = RateFile(path=str(path), rate="down_kbps", time="time_s").read()
        up = RateFile(path=str(path), rate="up_kbps", time="time_s").read()
    assert (down.traces, down.rate_bps.tolist(), down.edge_s.tolist()) == (1, [1e6, 3e6, 0.0], [0.0, 0.5, 1.0])
    assert (up.traces, up.rate_bps.tolist()) == (1, [2e3, 8e6, 0.0])
    said = " ".join(run.notes)
    assert "1 measurements not used: they are of no throughput" in said
    assert "1 measurements failed" in said
    # Collections of one direction have no parameters.
    path.write_text(json.dumps([{"tcp_speed_results": [4121, 4753.5], "device_properties": {}}]))
    found = RateFile(path=str(path), rate="rate_kbps", time="time_s").read()
    assert (found.rate_bps.tolist(), found.period_s.tolist()) == ([4.121e6, 4.7535e6, 0.0], [2.0])


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("t.json", json.dumps({"0": {"guid": "a", "messages": f"{A}2020-01-28\tdancing"}}), "device a: '2020-01-"),
        ("t.json", json.dumps({"0": {"guid": "a", "messages": "noon\twifi"}}), "device a: 'noon' is not allowed"),
        ("t.csv", "guid,time,state\na,2020-01-28,wifi\na,2020-01-28T01Z,4g\n", "device a: some instants have a zone"),
        ("t.json", json.dumps({"a": {"isSuccess": True, "ready_time": [[1]]}}), "device a: no numbers in isSuccess"),
        ("t.csv", "guid,time,state\na,2020-01-28 00:00:00,wifi\na,2020-01-28 00:00:01,on\n", "state, row 2: 'on'"),
        ("t.json", json.dumps([{"client": 0}]), "is JSON of no known layout; allowed: FLASH"),
        ("t.json", '{"a": ', "it is no JSON"),
        ("t.json", "[" * 100_000, "it is no JSON"),
        ("t.json", json.dumps([measurement("[1, no]", False)]), r"measurement 1: .* are \[1, no\]; allowed: numbers"),
    ],
)
def test_what_is_no_measurement_is_refused(tmp_path, name, text, said):
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(DataError, match=said):
        Traces(path=str(path)).build(RunSetup(2, Streams(0)))
