"""What benchmarks share: scenarios of which times alone count, and a clock of the processor."""

import time

from fedsim import Scenario

AVAILABILITY = {
    "always": "always",
    "bernoulli": {"kind": "bernoulli", "probability": 0.5},
    "markov": {"kind": "markov", "mean_on_s": 600.0, "mean_off_s": 1800.0},
    "diurnal": "diurnal",
    "flash": "flash",
}

LAW = {"kind": "log-normal", "median_s": 0.3, "sigma": 0.4}


def cell(downlink: str, uplink: str, down_hz: float = 1e6, up_hz: float = 180e3, read: str = "drawn") -> dict:
    """Return a fading cell with a sharing rule for each direction, bandwidths to share, and how shares read fading."""
    down = {"sharing": downlink, "bandwidth_hz": down_hz, "transmit_power_dbm": 33.0, "fading_in_shares": read}
    up = {"sharing": uplink, "bandwidth_hz": up_hz, "transmit_power_dbm": 23.0, "fading_in_shares": read}
    return {"kind": "cell", "fading": {"kind": "rayleigh", "coherence_s": 0.02}, "downlink": down, "uplink": up}


def timing_only(clients: int, network: dict, rounds: dict, selector: dict, **tables) -> Scenario:
    return Scenario(
        name="benchmark",
        crowd={"clients": clients},
        learning={"kind": "none", "model_bits": 1e6, "samples_per_client": 100},
        network=network,
        rounds=rounds,
        selector=selector,
        **tables,
    )


def seconds(work, *arguments) -> float:
    began = time.process_time()
    work(*arguments)
    return time.process_time() - began
