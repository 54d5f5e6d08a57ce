"""Parts of scenarios as one run has them, media of networks on a clock of their own, and transfers over them."""

import math

import numpy as np
import simpy

from fedsim.run_setup import RunSetup
from fedsim.streams import Streams

ACCESS = {"downlink_bps": 1e6, "uplink_bps": 1e6, "delay_s": 0.0}
FREE = {"capacity_bps": 1e9, "delay_s": 0.0}
STAR = {"kind": "star", "backhaul": FREE}
TWO_CELLS = {"kind": "two-tier", "cells": 2, "site_distance_m": 100.0, "fronthaul": FREE, "backhaul": FREE}
WALK = {"kind": "trace", "points": [[0, 0.0, 0.0, 0.0], [0, 10.0, 100.0, 0.0], [0, 20.0, 0.0, 0.0]]}
LOST = {"kind": "loss", "node": "bs-0", "from_s": 1.0, "duration_s": 10.0}


def of_crowd(law, clients, seed=0, **known):
    """Return what a law builds for a run of so many clients."""
    return law.build(RunSetup(clients, Streams(seed), **known))


def built(network, positions_m, seed=0):
    """Return the links of a network with clients at these places."""
    return network.build(RunSetup.at(np.asarray(positions_m, dtype=float), Streams(seed)))


def opened(network, positions_m, seed=0):
    """Return the medium of a network with clients at these places, and its clock."""
    env = simpy.Environment()
    return built(network, positions_m, seed).open(env), env


def finish(env, *flows):
    ends = ends_of(env, dict(enumerate(flows)))
    env.run(until=env.all_of([flow.done for flow in flows]) | env.timeout(1e5))
    return [ends.get(i, math.nan) for i in range(len(flows))]


def ends_of(env, flows):
    """Return a table that fills with the instants at which flows, {name: flow}, are done."""
    ends = {}
    for name, flow in flows.items():
        flow.done.callbacks.append(lambda _, name=name: ends.setdefault(name, env.now))
    return ends


def played(env, send, script, until_s=None):
    """Send (name, start, arguments, when cancelled or None); return the ends and the flows by name."""
    ends, flows = {}, {}

    def run(name, start_s, arguments, cancel_s):
        yield env.timeout(start_s)
        flows[name] = flow = send(*arguments)
        flow.done.callbacks.append(lambda _: ends.setdefault(name, env.now))
        if cancel_s is not None:
            yield env.timeout(cancel_s - start_s)
            flow.cancel()

    for line in script:
        env.process(run(*line))
    env.run(until=until_s)
    return ends, flows
