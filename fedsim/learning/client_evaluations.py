"""A model on the training samples of each client, with the client's own layers where an algorithm leaves it some.

Clients that use the server's model pass through it together, many in one batch; those with models of their own go to
the executor as many in one call as memory allows.
"""

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from fedsim.arrays import FloatArray, IntArray
from fedsim.learning.evaluation import ClientEvaluations
from fedsim.learning.lineage.computation import Computation
from fedsim.learning.lineage.digests import digest_of
from fedsim.learning.lineage.faults import of_clients
from fedsim.learning.lineage.handles import ModelHandle, StateHandle
from fedsim.learning.lineage.local_work import LocalWork

_BYTES_AT_ONCE: Final = 2**28
"""Bytes of clients' own models in one call of the executor."""


def evaluate_clients(
    results: Computation,
    model: ModelHandle,
    samples: IntArray,
    local: LocalWork,
    kept: Mapping[int, StateHandle],
) -> ClientEvaluations:
    states = kept if local.algorithm.personal else {}
    clients = np.flatnonzero(samples).tolist()
    # Of those that use the server's model: who passes through it together decides the last bits.
    together = digest_of("together", model.digest, "".join(results.shards[one] for one in clients if one not in states))
    digests = {
        one: results.score_digest(
            digest_of("own", model.digest, states[one].digest) if one in states else together, one
        )
        for one in clients
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
        if any(client not in states for client in missing.values()):
            shared = {digest: client for digest, client in owner.items() if client not in states}
            with of_clients(list(shared.values())):
                known |= zip(shared, results.score_together(model.vector, shared), strict=True)
        rest = [(digest, client) for digest, client in missing.items() if client in states]
        _settle(results, [states[client] for _, client in rest])
        most = max(1, _BYTES_AT_ONCE // model.vector.nbytes)
        for first in range(0, len(rest), most):
            part = rest[first : first + most]
            own = {}
            for digest, client in part:
                with of_clients([client]):
                    own[digest] = local.own_model(model.vector, states[client]), client
            with of_clients([client for _, client in part]):
                known |= zip(own, results.start_scores(own).results(), strict=True)
    found = {client: known[digest] for client, digest in digests.items()}
    names = next((list(one.metrics) for one in found.values()), [])

    def column(name: str) -> FloatArray:
        values = np.full(samples.size, np.nan)
        values[list(found)] = [one.value(name) for one in found.values()]
        return values

    return ClientEvaluations(column("accuracy"), column("loss"), {name: column(name) for name in names})


def _settle(results: Computation, states: Sequence[StateHandle]) -> None:
    """Compute client states that are neither in memory nor in the store."""
    lost = [state for state in states if state.value is None and not results.kept.load_state(state)]
    trainings = [state.training for state in lost if state.training is not None]
    results.materialize(trainings)
    for training in trainings:
        training.forget_unless_awaited()
