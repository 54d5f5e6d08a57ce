"""The joules of radios that are paid by the second: by hand, by closed forms, and against ns-3."""

import numpy as np
import pytest

from fedsim import simulate
from fedsim.clock import Clock
from fedsim.network.medium.fluid import Fluid
from fedsim.network.topology.flow_state import Route
from tests.support.short_runs import timed

BATTERY = {"kind": "battery", "capacity_j": 1e6, "compute_w": 0.0, "receive_j_per_bit": 0.0}
DISC = {"kind": "disc", "radius_m": 20.0}
NS3_J = {1: 0.134, 5: 0.157, 20: 0.170}
"""Joules of each of n stations that send at once, by ns-3's energy model of a Wi-Fi radio."""


def uploads(network, clients=1, bits=1e6, energy=None, devices=None, **tables):
    """Return the participations of one round in which all clients send at once."""
    return simulate(
        timed(
            bits=bits,
            samples=1,
            cohort=clients,
            **{
                "crowd": {"clients": clients, "placement": DISC},
                "network": network,
                "devices": {
                    "compute": "zero",
                    "energy": {**BATTERY, **({"transmit_w": 1.0} if energy is None else energy)},
                    **(devices or {}),
                },
                "rounds": {"count": 1, "policy": {"kind": "deadline", "deadline_s": 1e7}},
                **tables,
            },
        )
    ).participations.to_pandas()


def test_stations_of_a_wifi_pay_for_the_channel_as_in_ns_3():
    """With the power at which 20 stations pay what ns-3 says, all are within 15 %."""
    mean_j = {n: uploads({"kind": "wifi-dcf"}, n, 1e7)["energy_j"].mean() for n in NS3_J}
    power_w = NS3_J[20] / mean_j[20]
    for n, said_j in NS3_J.items():
        assert power_w * mean_j[n] == pytest.approx(said_j, rel=0.15)


def test_a_sensor_pays_for_its_packets_and_not_for_its_silences():
    """1,250 bytes at factor 7 are five packets of 222 bytes and one of 140.

    With 13 bytes of headers, and symbols of 1.024 ms: 8 + 4.25 + 8 + 5 ceil((8 PL - 28 + 44) / 28) symbols each. The
    silences of the duty cycle of 1 % are 99 times as long.
    """
    symbols = [20.25 + 5 * np.ceil((8 * (size + 13) + 16) / 28) for size in [222] * 5 + [140]]
    airtime_s = sum(symbols) * 1.024e-3
    for collisions in ("aloha", "none"):
        (row,) = uploads({"kind": "lora", "collisions": collisions}, bits=1e4, energy={"transmit_w": 0.4}).to_dict(
            "records"
        )
        assert row["energy_j"] == pytest.approx(0.4 * airtime_s)
        assert row["uplink_s"] > 80 * airtime_s


def test_a_satellite_is_sent_to_while_it_passes(tmp_path):
    """16 Mbit at 1 Mbit/s and 2 W are 32 J, in one pass or in two."""
    (tmp_path / "passes.csv").write_text("client,start_s,end_s\n0,100,110\n0,1100,1120\n")
    passes = {"kind": "file", "path": str(tmp_path / "passes.csv"), "after": "none"}
    (row,) = uploads({"kind": "satellite", "passes": passes}, bits=1.6e7, energy={"transmit_w": 2.0}).to_dict("records")
    assert row["energy_j"] == pytest.approx(32.0)
    assert row["uplink_s"] > 1000


@pytest.mark.parametrize(
    ("energy", "uplink_s", "bits"),
    [({"base_w": 0.5, "transmit_j_per_bit": 0.0}, 19.99, 3.99e6), ({"transmit_j_per_bit": 5e-6}, 2.0, 2e6)],
)
def test_a_battery_runs_empty_in_a_message_that_never_ends(energy, uplink_s, bits, tmp_path):
    """10 J; the model takes 0.01 s, and from 4 s on nothing is carried."""
    ways = {}
    for way, rate_bps, after in (("downlink", 1e9, "hold"), ("uplink", 1e6, "none")):
        (tmp_path / f"{way}.csv").write_text(f"rate_bps\n{rate_bps}\n")
        ways[way] = {"path": str(tmp_path / f"{way}.csv"), "step_s": 4.0, "after": after}
    network = {"kind": "rate-traces", **ways, "offset": "none", "delay_s": 0.0}
    (row,) = uploads(network, bits=1e7, energy={"capacity_j": 10.0, **energy}).to_dict("records")
    assert (row["outcome"], row["cut_in"]) == ("dropped", "uplink")
    assert (row["uplink_s"], row["uplink_bits"], row["energy_j"]) == pytest.approx((uplink_s, bits, 10.0))


@pytest.mark.parametrize("sharing", ["dedicated", "equal"])
def test_a_hole_of_a_trace_is_not_on_the_air(sharing, tmp_path):
    """At 1 Mbit/s with 90 s of nothing after 1 s: 2 s on the air of 92; two that share have 2 s each too."""
    (tmp_path / "rates.csv").write_text("time_s,rate_bps\n0,1e6\n1,0\n91,1e6\n1000,1e6\n")
    (tmp_path / "down.csv").write_text("time_s,rate_bps\n0,1e12\n1000,1e12\n")
    file = {"time": "time_s", "after": "hold"}
    network = {
        "kind": "rate-traces",
        "downlink": {"path": str(tmp_path / "down.csv"), **file},
        "uplink": {"path": str(tmp_path / "rates.csv"), **file},
        "offset": "none",
        "sharing": sharing,
        "delay_s": 0.5,
    }
    alone = uploads(network, 1, 2e6)
    assert alone["energy_j"].tolist() == pytest.approx([2.0], abs=0.02)
    assert alone["uplink_s"].tolist() == pytest.approx([92.5], abs=0.02)
    two = uploads(network, 2, 2e6)
    assert two["energy_j"].tolist() == pytest.approx([2.0] * 2, abs=0.02)


SHARED = ("equal", "first-come", "minimum-makespan", "proportional-fair", "max-relative-snr", "rate-fair")


@pytest.mark.parametrize("fading", ["none", "rayleigh"])
def test_rules_that_share_a_cell_cost_the_same_energy_for_the_same_bits(fading):
    """With one rate each uploads for bits / rate seconds of the whole band, whoever else is there."""
    found = {}
    for sharing in SHARED:
        network = {
            "kind": "cell",
            "fading": fading,
            "shadowing_sigma_db": 0.0,
            "uplink": {"sharing": sharing, "power_control": "spread"},
        }
        found[sharing] = uploads(network, 5, 1e7)
    energy_j = {sharing: rows["energy_j"].sum() for sharing, rows in found.items()}
    for joules in energy_j.values():
        assert joules == pytest.approx(energy_j["first-come"], rel=1e-9 if fading == "none" else 0.02)
    last_s = {sharing: rows["uplink_s"].max() for sharing, rows in found.items()}
    assert last_s["equal"] > 4 * last_s["first-come"]


def test_base_power_is_paid_by_duration_and_bits_beside_it():
    """2 s up at 3 W on the air, of which a first-come queue is none, 1e-6 J/bit, and 0.5 W for both messages."""
    energy = {"transmit_w": 3.0, "transmit_j_per_bit": 1e-6, "base_w": 0.5}
    network = {
        "kind": "cell",
        "fading": "none",
        "access": "none",
        "shadowing_sigma_db": 0.0,
        "uplink": {"sharing": "equal"},
    }
    rows = uploads(network, 3, 1e6, energy)
    free = uploads(network, 3, 1e6, {"transmit_w": 3.0})
    more_j = rows["energy_j"] - free["energy_j"]
    np.testing.assert_allclose(more_j, 1.0 + 0.5 * (rows["downlink_s"] + rows["uplink_s"]), rtol=1e-9)


@pytest.mark.parametrize("sharing", ["equal", "first-come", "dcf"])
def test_batteries_that_pay_bits_and_seconds_run_empty_on_a_shared_medium(sharing):
    """What it has is paid, at the prices of what was sent, to a thousandth."""
    network = {"kind": "cell", "fading": "none", "access": "none", "uplink": {"sharing": sharing}}
    prices = {"transmit_w": 0.4, "transmit_j_per_bit": 2e-7, "base_w": 0.1, "receive_j_per_bit": 0.0}
    rows = uploads(network, 4, 1e6, {**prices, "capacity_j": 0.15, "least_charge": 0.01})
    lost = rows[rows["outcome"] == "dropped"]
    assert len(lost) > 0
    np.testing.assert_allclose(lost["energy_j"], 0.15)
    seconds = rows["downlink_s"] + rows["uplink_s"]
    at_least = 2e-7 * rows["uplink_bits"] + 0.1 * seconds
    assert (at_least <= 0.15 * 1.001).all()
    assert (at_least + 0.4 * rows["uplink_s"] >= lost["energy_j"].max() * 0.999)[lost.index].all()


def test_a_flow_that_waits_behind_a_wire_is_on_the_air_for_its_own_link_alone():
    """Two flows of 4 bits over access links of 8 bit/s and 4 bit/s, and a wire of 2 bit/s that they share: 4 s each."""
    clock = Clock()
    fluid = Fluid(clock, np.array([8.0, 4.0, 2.0]))
    fluid.count_air()
    flows = [fluid.begin(4.0, Route((own, 2), (1.0, 1.0), 0.0, ends=(own, 2))) for own in (0, 1)]
    clock.run(until=2.0)
    assert [flow.on_air_s(2.0) for flow in flows] == [0.25, 0.5]
    clock.run(until=5.0)
    assert [flow.on_air_s(4.0) for flow in flows] == [0.5, 1.0]
