"""`check_network` passes for every network of fedsim, and refuses networks that are broken, each for its own fault."""
# ruff: noqa: ARG005 (links take what the contract gives)

from typing import ClassVar

import numpy as np
import pytest

from fedsim import Component
from fedsim.network import NETWORKS, Links
from fedsim.network.contracts import Directions
from fedsim.network.medium.cell import SHARINGS
from fedsim.network.transfers import SharedMedium, Transfer
from fedsim.testing import check_network
from tests.support.checks import refuses
from tests.support.families import by_family, module
from tests.support.lies import lying, spoilt, stating
from tests.support.options import NETWORK_OPTIONS

GRAPH = {
    "kind": "graph",
    "topology": {"kind": "star", "backhaul": {"capacity_bps": 1e8, "delay_s": 0.01}},
    "access": {"downlink_bps": 1e7, "uplink_bps": 5e6, "delay_s": 0.001},
}
LATENCY = {"kind": "latency", "downlink": "zero", "uplink": {"kind": "shifted-exponential", "shift_s": 1, "scale_s": 2}}
TABLES = {
    "5g-midband": {"kind": "5g-midband", "rate": "shannon"},
    "graph": GRAPH,
    "latency": LATENCY,
    "rate-traces": {"kind": "rate-traces", **NETWORK_OPTIONS["rate-traces"]},
}


@pytest.mark.parametrize("kind", by_family(NETWORKS, module))
def test_networks_of_fedsim_are_sound(kind):
    check_network(TABLES.get(kind, kind), bits=1e6 if kind == "nb-iot" else 3e7, rtol=0.25)


@pytest.mark.slow
def test_midband_is_sound_with_the_rate_that_it_has_by_default():
    """A mean over fading and coding takes long to work out."""
    check_network("5g-midband", bits=3e7, rtol=0.25)


@pytest.mark.parametrize("rule", [*by_family(SHARINGS, module), "multicast"])
def test_cells_are_sound_under_every_sharing_rule(rule):
    uplink = "equal" if rule == "multicast" else rule
    check_network({"kind": "cell", "downlink": {"sharing": rule}, "uplink": {"sharing": uplink}}, rtol=0.25)


class Sound(Links):
    """A second a Mbit, with a factor for each client and draw; the broken ones differ from it in one thing each."""

    def __init__(self, positions_m, streams):
        self.factor = 1.0 + np.arange(len(positions_m)) / 4
        self.streams = streams

    def downlink_s(self, client, draw, start_s, bits):
        return bits / 1e6 * self.factor[client] * 2 * self.streams.uniform("own-network", client, draw)

    def uplink_s(self, client, draw, start_s, bits):
        return self.downlink_s(client, draw, start_s, bits)

    def expected_downlink_s(self, bits):
        return bits / 1e6 * self.factor

    def expected_uplink_s(self, bits):
        return self.expected_downlink_s(bits)


class Own(Component):
    """A network that builds one of the classes below."""

    requires: ClassVar[frozenset[str]] = frozenset({"model-bits"})

    links: type = Sound

    def build(self, run):
        return self.links(run.positions_m, run.streams)


def test_a_network_of_a_users_own_is_sound():
    check_network(Own())


def moody(self, client, draw, start_s, bits):
    """Draw from a generator of the links' own."""
    self.rng = getattr(self, "rng", np.random.default_rng(1))
    return bits / 1e6 * self.factor[client] * 2 * self.rng.random(client.size)


class Unseeded(Sound):
    """Draws its factors from no stream of the run."""

    def __init__(self, positions_m, streams):
        super().__init__(positions_m, streams)
        self.factor = np.random.default_rng().uniform(0.5, 1.5, len(positions_m))


def writing(self, client, draw, start_s, bits):
    start_s += 1.0
    return Sound.uplink_s(self, client, draw, start_s, bits)


class Pipe(Sound, SharedMedium):
    """A medium that never carries a bit."""

    shared = Directions(down=False, up=True)
    stops, air = True, 1.0

    def open(self, env):
        self.env = env
        return self

    def downlink(self, client, bits):
        raise NotImplementedError

    def uplink(self, client, bits):
        return Sent(self.env, bits, self.expected_uplink_s(bits)[client], self.stops, self.air)


class Sent(Transfer):
    def __init__(self, env, bits, took_s, stops, air):
        self.air = air
        self.env, self.bits, self.took_s, self.came_s, self.stops = env, bits, took_s, env.now, stops
        self.done = env.timeout(took_s) if not stops else env.event()

    def cancel(self):
        pass

    def sent_bits(self):
        return min(1.0, (self.env.now - self.came_s) / self.took_s) * self.bits

    def on_air_s(self, elapsed_s):
        return self.air * elapsed_s


def check(links):
    check_network(Own.model_construct(links=links))


test_a_broken_network_is_refused_for_its_fault = refuses(
    check,
    [
        (
            spoilt(Sound, "downlink_s", lambda seconds: seconds - 1.0),
            r"downlink_s returned .*; numbers of at least 0 are needed",
        ),
        (
            lying(Sound, "expected_uplink_s", lambda self, bits: np.nan * self.factor),
            r"expected_uplink_s returned \[nan\]",
        ),
        (spoilt(Sound, "downlink_s", np.float32), r"downlink_s returned float32 of shape \(12,\); float64"),
        (
            lying(Sound, "downlink_s", lambda self, client, *of: Sound.downlink_s(self, np.arange(12), *of)),
            r"downlink_s returned float64 of shape \(12,\); float64 of shape \(1,\) is needed",
        ),
        (
            lying(Sound, "uplink_s", lambda self, client, *of: client.size * Sound.uplink_s(self, client, *of)),
            r"uplink_s is .* for some of the clients",
        ),
        (lying(Sound, "downlink_s", moody), r"downlink_s is .* again after another draw"),
        (Unseeded, r"downlink_s is .* of links built again from the same seed"),
        (
            lying(Sound, "expected_downlink_s", lambda self, bits: 1e6 / (1.0 + bits) * self.factor),
            r"expected_downlink_s is .* and more for fewer",
        ),
        (
            spoilt(Sound, "expected_uplink_s", lambda seconds: seconds / 2),
            r"expected_uplink_s is .* for client \d+, but the mean of 48 durations is",
        ),
        (
            lying(
                Sound,
                "carried_bits",
                lambda self, client, draw, start_s, elapsed_s, bits, up: (
                    bits - Sound.carried_bits(self, client, draw, start_s, elapsed_s, bits, up=up)
                ),
            ),
            r"carried_bits of the downlink fell with time",
        ),
        (
            spoilt(Sound, "carried_bits", lambda bits: bits / 2),
            r"carried_bits of the downlink is less than .* bits at the end of the transfer",
        ),
        (
            spoilt(Sound, "on_air_s", lambda seconds: 2 * seconds),
            r"on_air_s of the downlink fell with time, or exceeded",
        ),
        (spoilt(Sound, "on_air_s", lambda seconds: 1.0 - seconds), r"on_air_s of the downlink fell with time"),
        (
            lying(
                Sound,
                "downlink_s",
                lambda self, client, *of: np.where(client == 1, np.inf, Sound.downlink_s(self, client, *of)),
            ),
            r"downlink_s and expected_downlink_s are infinite for different clients",
        ),
        (
            lying(Sound, "uplink_s", writing),
            r"uplink_s failed with ValueError: .*read-only; it must not change the arrays",
        ),
        (stating(Sound, shared=Directions(down=True, up=False)), r"Own.build returned a Lie that shares a direction"),
        (Pipe, r"transfer 0 on the uplink has not ended"),
        (stating(Pipe, stops=False), r"that was cancelled sent bits, or ended, afterwards"),
        (stating(Pipe, stops=False, air=2.0), r"on_air_s of a transfer on the uplink is not between 0 and the time"),
        (dict, r"build failed with TypeError"),
        (lambda *_: {}, r"Own.build returned a dict; allowed: links that derive from fedsim.network.Links"),
    ],
)
test_what_a_network_says_of_itself_must_hold = refuses(
    check_network,
    [
        (stating(Own, requires=frozenset())(), "downlink_s depends on the bits, though requires does not name"),
        (stating(Own, provides=frozenset({"sites"}))(), "provides names 'sites', but its links have no serving"),
        (object(), r"must derive from fedsim\.Component"),
        ("cel", "there is no network 'cel'"),
    ],
)
