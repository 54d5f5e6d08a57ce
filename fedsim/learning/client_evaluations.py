"""A model on the training samples of each client, each client with its own layers where an algorithm leaves it some.

Scores are kept under the digests of `Computation.score_digest`, as those of selectors' questions are: what has been
evaluated before is found. The others go to the executor together, as many clients in one call as memory allows.
"""

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from fedsim.arrays import FloatArray, IntArray, Vector
from fedsim.learning.evaluation import ClientEvaluations, Evaluation
from fedsim.learning.lineage.computation import Computation
from fedsim.learning.lineage.handles import ModelHandle, StateHandle, digest_of
from fedsim.learning.lineage.local_work import LocalWork

_BYTES_AT_ONCE: Final = 2**28
"""Of clients' own models that are given to the executor by one call."""


def evaluate_clients(
    results: Computation,
    model: ModelHandle,
    samples: IntArray,
    local: LocalWork,
    kept: Mapping[int, StateHandle],
) -> ClientEvaluations:
    """Return accuracy, loss and metrics of a model on all training samples of each client.

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
    owner = {digest: client for client, digest in digests.items()}
    records = results.kept.records(list(owner))
    known = {
        digest: results.scores.of_record(record, int(samples[owner[digest]])) for digest, record in records.items()
    }
    results.found_probes(len(known))
    missing = {digest: client for digest, client in owner.items() if digest not in known}
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
    found = {client: known[digest] for client, digest in digests.items()}
    names = next((list(one.metrics) for one in found.values()), [])

    def column(name: str) -> FloatArray:
        values = np.full(samples.size, np.nan)
        values[list(found)] = [one.value(name) for one in found.values()]
        return values

    return ClientEvaluations(column("accuracy"), column("loss"), {name: column(name) for name in names})


def _scored(results: Computation, scores: Mapping[str, tuple[Vector, int]]) -> dict[str, Evaluation]:
    """Return the scores of models on clients' data, by their digests."""
    if not scores:
        return {}
    return dict(zip(scores, results.start_scores(scores).results(), strict=True))


def _settle(results: Computation, states: Sequence[StateHandle]) -> None:
    """Work out what clients keep, where it is neither in memory nor in the store."""
    lost = [state for state in states if state.value is None and not results.kept.load_state(state)]
    trainings = [state.training for state in lost if state.training is not None]
    results.materialize(trainings)
    for training in trainings:
        training.forget_unless_awaited()
