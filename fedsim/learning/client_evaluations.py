"""A model on the local test samples of each client, with the client's own layers where an algorithm leaves it some."""

import math
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from fedsim.arrays import FloatArray
from fedsim.learning.data.partitions.local_tests import LocalTests
from fedsim.learning.evaluation import ClientEvaluations, Evaluation
from fedsim.learning.lineage.asked import Model, State, digest_of, of_clients
from fedsim.learning.lineage.computed import Computation
from fedsim.learning.lineage.evaluated import Evaluations
from fedsim.learning.lineage.local_work import LocalWork

_QUANTILES: Final = {"p10": 0.1, "p50": 0.5, "p90": 0.9}
_TENTH: Final = 0.1

_BYTES_AT_ONCE: Final = 2**28
"""Bytes of clients' own models in one call of the executor."""


def evaluate_clients(
    evaluations: Evaluations,
    model: Model,
    tests: LocalTests,
    local: LocalWork,
    remembered: Mapping[int, State],
) -> ClientEvaluations:
    states = remembered if local.algorithm.personal else {}
    samples = tests.samples
    clients = np.flatnonzero(samples).tolist()
    # Of those that use the server's model: who passes through it together decides the last bits.
    together = digest_of("together", model.digest, "".join(tests.digests[one] for one in clients if one not in states))
    digests = {
        one: evaluations.local_digest(
            digest_of("own", model.digest, states[one].digest) if one in states else together, tests.digests[one]
        )
        for one in clients
    }
    owner = {digest: client for client, digest in digests.items()}
    computation = evaluations.computation
    records = computation.known.records(list(owner))
    known = {
        digest: evaluations.scores.of_record(record, int(samples[owner[digest]])) for digest, record in records.items()
    }
    evaluations.probes_found += len(known)
    missing = {digest: client for digest, client in owner.items() if digest not in known}
    if missing:
        computation.vector(model)
        if any(client not in states for client in missing.values()):
            shared = {digest: client for digest, client in owner.items() if client not in states}
            with of_clients(list(shared.values())):
                known |= zip(shared, evaluations.together(model.vector, shared, tests.rows), strict=True)
        rest = [(digest, client) for digest, client in missing.items() if client in states]
        _remember(computation, [states[client] for _, client in rest])
        most = max(1, _BYTES_AT_ONCE // model.vector.nbytes)
        for first in range(0, len(rest), most):
            part = rest[first : first + most]
            own = {}
            for digest, client in part:
                with of_clients([client]):
                    own[digest] = local.own_model(model.vector, states[client]), client
            with of_clients([client for _, client in part]):
                known |= zip(own, evaluations.start(own, tests.rows).results(), strict=True)
    found = {client: known[digest] for client, digest in digests.items()}
    names = next((list(one.metrics) for one in found.values()), [])

    def column(name: str) -> FloatArray:
        values = np.full(samples.size, np.nan)
        values[list(found)] = [one.value(name) for one in found.values()]
        return values

    metrics = {name: column(name) for name in names}
    return ClientEvaluations(
        column("accuracy"), column("loss"), metrics, samples, local.algorithm.personal, tests.held_out
    )


def over_clients(found: ClientEvaluations) -> Evaluation:
    """Return the mean over the clients with local test samples, each counted once, and quantiles of each metric."""
    there = found.samples > 0
    if not there.any():
        return Evaluation(math.nan, math.nan, own=True, held_out=found.held_out)
    columns = {**({} if found.metrics else {"accuracy": found.accuracy}), **found.metrics}
    metrics = {name: float(values[there].mean()) for name, values in columns.items()}
    for name, values in columns.items():
        for part, share in _QUANTILES.items():
            metrics[f"{name}-{part}"] = float(np.quantile(values[there], share))
    if "accuracy" in columns:
        lowest = np.sort(found.accuracy[there])[: math.ceil(_TENTH * np.count_nonzero(there))]
        metrics["accuracy-worst-tenth"] = float(lowest.mean())
    accuracy, loss = (float(values[there].mean()) for values in (found.accuracy, found.loss))
    return Evaluation(accuracy, loss, metrics, own=True, held_out=found.held_out)


def _remember(computation: Computation, states: Sequence[State]) -> None:
    """Compute client states that are neither in memory nor in the store."""
    lost = [state for state in states if not computation.known.find_state(state)]
    updates = [state.update for state in lost if state.update is not None]
    computation.compute(updates)
    for update in updates:
        update.result = None
