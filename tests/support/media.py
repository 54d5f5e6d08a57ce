"""Media of networks on a clock of their own, and transfers over them."""

import math

import numpy as np
import simpy

from fedsim.streams import Streams


def opened(network, positions_m, seed=0):
    """Return the medium of a network with clients at these places, and its clock."""
    env = simpy.Environment()
    return network.build(np.asarray(positions_m, dtype=float), Streams(seed)).open(env), env


def finish(env, *flows):
    """Return when each flow is done."""
    ends = [math.nan] * len(flows)

    def watch(i, flow):
        yield flow.done
        ends[i] = env.now

    waiting = [env.process(watch(i, flow)) for i, flow in enumerate(flows)]
    env.run(until=env.all_of(waiting) | env.timeout(1e5))
    return ends
