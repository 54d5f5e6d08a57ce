"""A model on the training samples of each client, each client with its own layers where an algorithm leaves it some.

Scores are kept under the digests of `Computation.score_digest`, as those of selectors' questions are: what has been
evaluated before is found. The others go to the executor together, as many clients in one call as memory allows.
"""

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from fedsim.arrays import IntArray, Vector
from fedsim.learning.evaluation import ClientEvaluations
from fedsim.learning.lineage.computation import Computation
from fedsim.learning.lineage.handles import ModelHandle, StateHandle, digest_of
from fedsim.learning.lineage.local_work import LocalWork
from fedsim.learning.store.contracts import Record

_BYTES_AT_ONCE: Final = 2**28
"""Of clients' own models that are given to the executor by one call."""


def evaluate_clients(
    results: Computation,
    model: ModelHandle,
    samples: IntArray,
    local: LocalWork,
    kept: Mapping[int, StateHandle],
) -> ClientEvaluations:
    """Return accuracy and loss of a model on all training samples of each client.

    Parameters
    ----------
    results : of the learner
    model : the server's
    samples : of each client, shape (K,)
    local : the local algorithm
    kept : what clients keep from one training to the next, by client
    """
    states = kept if local.algorithm.personal else {}
    digests = {
        client: results.score_digest(
            digest_of("own", model.digest, states[client].digest) if client in states else model.digest, client
        )
        for client in np.flatnonzero(samples).tolist()
    }
    known: dict[str, Record] = dict(results.kept.records(list(dict.fromkeys(digests.values()))))
    results.found_probes(len(known))
    missing = {digest: client for client, digest in digests.items() if digest not in known}
    if missing:
        results.vector(model)
        shared = {digest: (model.vector, client) for digest, client in missing.items() if client not in states}
        known |= _scored(results, shared)
        rest = [(digest, client) for digest, client in missing.items() if client in states]
        _settle(results, [states[client] for _, client in rest])
        most = max(1, _BYTES_AT_ONCE // model.vector.nbytes)
        for first in range(0, len(rest), most):
            part = rest[first : first + most]
            own = {digest: (local.own_model(model.vector, states[client]), client) for digest, client in part}
            known |= _scored(results, own)
    found = ClientEvaluations(np.full(samples.size, np.nan), np.full(samples.size, np.nan))
    for client, digest in digests.items():
        found.accuracy[client], found.loss[client] = known[digest]["accuracy"], known[digest]["loss"]
    return found


def _scored(results: Computation, scores: Mapping[str, tuple[Vector, int]]) -> dict[str, Record]:
    """Return the scores of models on clients' data, by their digests."""
    if not scores:
        return {}
    found = results.start_scores(scores).results()
    return {digest: {"accuracy": one.accuracy, "loss": one.loss} for digest, one in zip(scores, found, strict=True)}


def _settle(results: Computation, states: Sequence[StateHandle]) -> None:
    """Work out what clients keep, where it is neither in memory nor in the store."""
    lost = [state for state in states if state.value is None and not results.kept.load_state(state)]
    trainings = [state.training for state in lost if state.training is not None]
    results.materialize(trainings)
    for training in trainings:
        training.forget_unless_awaited()
