"""What devices draw: from the streams that their modules promise, and from no others."""

import numpy as np
import pytest

from fedsim.devices import COMPUTE_TIMES, DROPOUTS, ENERGIES, compute, contracts, energy
from fedsim.devices.availability import diurnal, flash, independent, on_off, traces
from fedsim.devices.availability.independent import AVAILABILITIES
from fedsim.run_setup import RunSetup
from tests.support.recorded_streams import RecordedStreams, promised

IDS = np.arange(40)
LOADED = {"jitter": {"kind": "log-normal", "sigma": 0.1}, "load": 0.2}
TIMES = (
    {"kind": "rate", "samples_per_s": 1.0},
    {"kind": "flops", "flops_per_s": 1e6, "load": 0.2},
    {"kind": "fedscale", "path": "capacities.csv", **LOADED},
    {"kind": "fedscale", "law": "phones"},
)
COMING = (
    (independent, {"kind": "bernoulli", "probability": 0.02}),
    (on_off, {"kind": "markov", "mean_on_s": 5.0, "mean_off_s": 5.0}),
    (diurnal, {"kind": "diurnal", "zones_h": 3.0}),
    (flash, {"kind": "flash", "diurnal": False}),
    (traces, {"kind": "traces", "path": "intervals.csv"}),
)


def test_compute_times():
    streams = RecordedStreams(0)
    for table in TIMES:
        law = COMPUTE_TIMES.make(table).build(RunSetup(IDS.size, streams, flops_per_sample=1e6))
        law.duration_s(IDS, 3, np.ones(IDS.size))
    assert streams.names == promised(compute)


@pytest.mark.parametrize(("module", "table"), COMING, ids=[table["kind"] for _, table in COMING])
def test_availability(module, table):
    streams = RecordedStreams(0)
    availability = AVAILABILITIES.make(table).build(RunSetup(IDS.size, streams))
    for draw in range(1, 5):
        availability.available(IDS, *availability.next_s(3600.0 * draw, draw))
    assert streams.names == promised(module)


def test_dropout_and_batteries():
    streams = RecordedStreams(0)
    DROPOUTS.make({"kind": "hazard", "rate_per_s": 1.0}).time_to_dropout_s(IDS, 1, streams)
    assert streams.names == promised(contracts.Dropout) == {"dropout"}
    streams = RecordedStreams(0)
    ENERGIES.make({"kind": "battery", "capacity_j": 1.0, "compute_w": 1.0}).build(RunSetup(IDS.size, streams))
    assert streams.names == promised(energy)


@pytest.fixture(autouse=True)
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "capacities.csv").write_text("computation,communication\n20,1000\n30,2000\n")
    (tmp_path / "intervals.csv").write_text("device,start_s,end_s,period_s\n0,1,2,9\n1,3,5,9\n")
