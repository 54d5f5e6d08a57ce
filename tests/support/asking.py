"""Short ways to ask a learner for one thing."""

import numpy as np

from fedsim.learning.aggregation.combining import WeightedSum


def one_update(learner, model, client, release=None, work=1.0):
    releases = {} if release is None else {0: release}
    return learner.updates(model, np.array([client]), releases, np.array([work]))[0]


def losses(learner, updates):
    return learner.measure(updates, ("loss",))["loss"]


def even(count):
    return np.full(count, 1 / count)


def aggregated(optimizer, model, differences, weights):
    """Return the next model of a server without state to which differences have come."""
    total = WeightedSum(optimizer, model)
    for difference, weight in zip(differences, weights.tolist(), strict=True):
        total.add(difference, weight)
    return total.stepped(model.size, model, None)[0]


def next_model(learner, model, clients):
    """Return the next model of a learner from one update of each client, all of equal weight."""
    return learner.aggregate(model, learner.updates(model, np.array(clients)), even(len(clients)))
