"""The table of clients: what is known of them before the first round."""

from collections import Counter
from typing import ClassVar

import numpy as np
import pyarrow.parquet as pq
import pytest

from fedsim import Scenario, simulate
from fedsim.devices.heterogeneity import mean_slowdown
from fedsim.errors import PartError
from fedsim.history.schema import CLIENTS
from fedsim.network import LinkFacts, Links
from fedsim.registry import Component
from fedsim.results import read_run, report, run
from fedsim.streams import Streams

PLACES = [[30.0, 40.0], [0.0, 200.0], [600.0, 0.0]]
TABLES = {
    "name": "clients",
    "crowd": {"clients": 3, "placement": {"kind": "given", "positions_m": PLACES}},
    "learning": {"kind": "none", "model_bits": 1e6, "samples_per_client": 10},
    "network": {
        "kind": "cell",
        "fading": "none",
        "shadowing_sigma_db": 0.0,
        "path_loss": {"kind": "log-distance", "exponent": 2.0, "reference_loss_db": 60.0, "reference_distance_m": 1.0},
        "rate": {"kind": "shannon", "snr_gap_db": 0.0, "ceiling": "none"},
        "uplink": {"bandwidth_hz": 2e6},
    },
    "devices": {"compute": {"kind": "rate", "samples_per_s": [1.0, 2.0, 4.0]}},
    "rounds": {"count": 2},
    "selector": "all",
}
LEARNING = {
    "kind": "supervised",
    "data": {"kind": "digits", "train_limit": 90},
    "split": {"kind": "dirichlet", "alpha": 0.1},
    "model": {"kind": "mlp", "hidden": [2]},
}
NOWHERE = ("x_m", "y_m", "distance_m", "downlink_snr_db", "uplink_snr_db", "downlink_bps", "uplink_bps")


def table(**changes):
    return simulate(Scenario(**TABLES).replace(changes)).clients.to_pydict()


def test_clients_of_a_cell():
    """By hand: 36 or 23 dBm less 60 dB and 20 dB per decade, over -174 dBm/Hz, the bandwidth and the noise figure."""
    found = table()
    assert found["client"] == [0, 1, 2]
    assert found["x_m"] == [30.0, 0.0, 600.0]
    assert found["y_m"] == [40.0, 200.0, 0.0]
    assert found["distance_m"] == pytest.approx([50.0, 200.0, 600.0])
    assert found["site"] == [0, 0, 0]
    loss_db = 60 + 20 * np.log10([50.0, 200.0, 600.0])
    noise_dbm = -173.975 + 10 * np.log10([1e6, 2e6]) + [9.0, 5.0]
    for direction, power_dbm, noise, hertz in (("downlink", 36, noise_dbm[0], 1e6), ("uplink", 23, noise_dbm[1], 2e6)):
        snr_db = power_dbm - loss_db - noise
        assert found[f"{direction}_snr_db"] == pytest.approx(snr_db, abs=0.01)
        rate_bps = hertz * np.log2(1 + 10 ** (snr_db / 10))
        assert found[f"{direction}_bps"] == pytest.approx(rate_bps, rel=1e-3)
    assert found["samples_per_s"] == pytest.approx([1.0, 2.0, 4.0])
    assert found["samples"] == [10, 10, 10]
    for name in ("classes", "labels", "flops_per_s", "capacity_j", "charge_j"):
        assert found[name] == [None] * 3


def test_what_a_network_and_devices_do_not_have_is_null():
    found = table(**{"network": "pause-two-speed", "devices.compute": "zero", "learning": "none"})
    assert {name for name, values in found.items() if values != [None] * 3} == {"client"}
    assert set(NOWHERE) <= set(found)


def test_rates_of_fedscales_network_are_constant():
    found = table(network={"kind": "fedscale", "median_kbps": 1000.0, "sigma": 0.0})
    assert found["downlink_bps"] == found["uplink_bps"] == [1024e3] * 3


def test_clients_of_a_graph():
    """The narrowest link of the route is the backhaul down, and the client's own up."""
    topology = {"kind": "star", "backhaul": {"capacity_bps": 2e6, "delay_s": 0.01}}
    access = {"downlink_bps": 1e7, "uplink_bps": 1e5, "delay_s": 0.005}
    found = table(network={"kind": "graph", "topology": topology, "access": access})
    assert found["downlink_bps"] == pytest.approx([2e6] * 3)
    assert found["uplink_bps"] == pytest.approx([1e5] * 3)
    assert found["distance_m"] == pytest.approx([50.0, 200.0, 600.0])
    assert found["downlink_snr_db"] == [None] * 3


def test_labels_are_counted():
    scenario = Scenario(**{**TABLES, "learning": LEARNING})
    found = simulate(scenario, store=False).clients.to_pydict()
    data = scenario.learning.data.load()

    rows = scenario.learning.split.assign(data.train_y, 10, 3, Streams(0))
    assert found["samples"] == [part.size for part in rows]
    assert found["classes"] == [len(set(data.train_y[part].tolist())) for part in rows]
    counted = [Counter(data.train_y[part].tolist()) for part in rows]
    assert found["labels"] == [[of[label] for label in range(10)] for of in counted]


def test_speeds_in_operations_are_those_of_the_law_on_an_idle_device():
    """By hand: 2e9 operations a sample; a busy client loses load / (1 - load) of its time to other work on the mean."""
    speeds = [1e9, 2e9, 4e9]
    law = {"kind": "flops", "flops_per_s": speeds, "jitter": "fixed"}
    changes = {"learning.flops_per_sample": 2e9, "devices.compute": law}
    found = table(**changes)
    assert found["flops_per_s"] == pytest.approx(speeds)
    assert found["samples_per_s"] == pytest.approx([0.5, 1.0, 2.0])
    busy = table(**{**changes, "devices.compute": {**law, "load": 0.25}})
    assert busy["flops_per_s"] == pytest.approx([speed / float(mean_slowdown(0.25)) for speed in speeds])


def test_a_report_describes_the_clients():
    history = simulate(Scenario(**{**TABLES, "learning": LEARNING}), store=False)
    page = next(page for page in report(history) if page.title == "clients before the first round")
    lines = {title: values for title, *values in page.lines}
    assert lines["distance m"] == ["50", "200", "600"]
    assert lines["samples per s"] == ["1", "2", "4"]
    counts = np.array(history.clients.column("labels").to_pylist())
    different = sorted(np.count_nonzero(counts, axis=1))
    assert lines["different labels"] == [str(number) for number in different]
    share = sorted(counts.max(axis=1) / counts.sum(axis=1))
    assert lines["share of the commonest label"] == [f"{value:.4g}" for value in share], "three clients"
    assert "battery J" not in lines


def test_the_table_lies_in_the_folder_and_can_be_read_as_a_table_of_clients(tmp_path):
    first = Scenario(**TABLES)
    history = run(first, tmp_path / "one", store=False)
    assert history.clients.schema.equals(CLIENTS.arrow)
    assert pq.read_table(tmp_path / "one" / "clients.parquet").equals(history.clients)
    assert read_run(tmp_path / "one").clients.equals(history.clients)
    labelled = run(Scenario(**{**TABLES, "learning": LEARNING}), tmp_path / "labels", store=False)
    assert read_run(tmp_path / "labels").clients.equals(labelled.clients)
    column = {"column": "samples_per_s", "path": str(tmp_path / "one" / "clients.parquet")}
    again = first.replace({"devices.compute": {"kind": "rate", "samples_per_s": column}})
    assert simulate(again).participations.equals(history.participations)


class Odd(Component):
    """A network whose facts have a wrong shape."""

    requires: ClassVar[frozenset[str]] = frozenset()

    def build(self, run):
        return OddLinks(run.clients)


class OddLinks(Links):
    """Links that take no time."""

    def __init__(self, clients):
        self.clients = clients

    def downlink_s(self, client, draw, start_s, bits):
        return np.zeros(client.size)

    uplink_s = downlink_s

    def expected_downlink_s(self, bits):
        return np.zeros(self.clients)

    expected_uplink_s = expected_downlink_s

    def describe(self):
        return LinkFacts(rate_bps=np.ones(2))


def test_facts_of_a_network_of_ones_own_are_checked():
    with pytest.raises(PartError, match=r"describe returned rate_bps = .*of shape"):
        simulate(Scenario(**TABLES).replace({"network": Odd()}))
