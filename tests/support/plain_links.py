"""Worlds of a scenario whose times are bits over rates and samples over speeds, for closed forms."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fedsim import Component
from fedsim.devices.contracts import Dropout
from fedsim.network.contracts import Links
from tests.support.short_runs import timed


class PlainRates(Component):
    """Links of their own for all clients; client k has ``1 + slowdown * k`` times the transfer times of client 0."""

    requires: ClassVar[frozenset[str]] = frozenset({"model-bits"})

    down_bps: float = 1e5
    up_bps: float = 5e4
    slowdown: float = 0.0

    def build(self, run):
        return PlainLinks(self, 1.0 + self.slowdown * np.arange(run.clients))


@dataclass(frozen=True)
class PlainLinks(Links):
    rates: PlainRates
    factor: np.ndarray

    def downlink_s(self, client, draw, start_s, bits):
        return self.factor[client] * bits / self.rates.down_bps

    def uplink_s(self, client, draw, start_s, bits):
        return self.factor[client] * bits / self.rates.up_bps

    def expected_downlink_s(self, bits):
        return self.factor * bits / self.rates.down_bps

    def expected_uplink_s(self, bits):
        return self.factor * bits / self.rates.up_bps


class Lost(Component, Dropout):
    """Some clients vanish a fixed time after each message to them has left."""

    possible: ClassVar[bool] = True

    clients: tuple[int, ...] = ()
    after_s: float = 0.1

    def time_to_dropout_s(self, client, draw, streams, phases_s=None):
        return np.where(np.isin(client, self.clients), self.after_s, np.inf)


def plain_scenario(clients=3, *, slowdown=1.0, **changes):
    """Return a scenario without chance: transfers take bits over rates, and work takes samples over a speed."""
    compute = {"kind": "rate", "samples_per_s": 100.0, "spread_sigma": 0.0, "jitter_sigma": 0.0}
    network = PlainRates(slowdown=slowdown)
    scenario = timed(clients=clients, bits=1.0, samples=1, cohort=1, network=network, devices={"compute": compute})
    return scenario.replace({"results.audit": False, **changes})
