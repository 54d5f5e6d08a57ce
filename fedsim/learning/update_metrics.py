"""Measurements of delivered updates, `fedsim.measurements.MEASUREMENTS`, and deviations of stale ones from fresh.

Measurements are stored: a report under the digest of its training, norms, scores and deviations under digests of their
own, update vectors as arrays. A training runs only if something that is asked for has never been measured.
"""

from collections.abc import Collection, Sequence
from math import nan
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from fedsim.arrays import FloatArray, Vector
from fedsim.learning.lineage.computation import Computation
from fedsim.learning.lineage.digests import digest_of
from fedsim.learning.lineage.evaluations import Running
from fedsim.learning.lineage.handles import Training
from fedsim.learning.store.contracts import Record
from fedsim.measurements import check_needs

Updates = Sequence[Training]

_MODELS_AT_ONCE: Final = 32
"""Clients' own models that are evaluated by one call, beside further trainings."""


def measure(results: Computation, updates: Updates, needs: Collection[str]) -> dict[str, NDArray[Any]]:
    """Return each measure asked for, one element (or row) per update."""
    check_needs(needs)
    if not needs:
        return {}
    results.count(updates)
    asked = _Measured(results, updates, needs)
    if missing := asked.missing():
        heirs = {training.heir: None for training in missing if training.heir is not None}
        models = [model for heir in heirs if (model := heir()) is not None]
        results.materialize([*missing, *models], asked.hear)
        asked.finish()
    return {need: asked.values(need) for need in needs}


def deviations(results: Computation, fresh: Updates, fresh_weights: FloatArray | None, stale: Updates) -> FloatArray:
    """Return REFL's Lambda_s of each stale update, shape (len(stale),).

    The rule ``|(u + n m) / (n + 1) - m|^2 / |m|^2`` is worked out as ``|u - m|^2 / ((n + 1)^2 |m|^2)``, which loses no
    digits where u and m are close.
    """
    weights = np.ones(len(fresh)) if fresh_weights is None else np.asarray(fresh_weights, dtype=np.float64)
    if weights.shape != (len(fresh),) or not np.all(np.isfinite(weights) & (weights >= 0)):
        raise ValueError(f"fresh_weights: {fresh_weights!r}; one finite number >= 0 for each of {len(fresh)} updates")
    if not len(stale) or not weights.sum() > 0:
        return np.zeros(len(stale))
    results.count((*fresh, *stale))
    mean = digest_of("mean", "".join(update.digest for update in fresh), weights.tobytes())
    digests = [digest_of("deviation", mean, update.digest) for update in stale]
    known = results.kept.records(digests)
    if any(digest not in known for digest in digests):
        found = _deviations(results, fresh, weights, stale)
        known = {digest: {"deviation": value} for digest, value in zip(digests, found.tolist(), strict=True)}
        results.kept.put_records(known)
    return np.array([known[digest]["deviation"] for digest in digests], dtype=np.float64)


def _deviations(results: Computation, fresh: Updates, weights: FloatArray, stale: Updates) -> FloatArray:
    results.materialize([*fresh, *stale])
    mean = np.zeros(results.layout.parameters)
    for update, share in zip(fresh, (weights / weights.sum()).tolist(), strict=True):
        mean += share * _parameters_sent(results, update).astype(np.float64)
    scale = (len(fresh) + 1) ** 2 * _square_sum(mean)
    if scale == 0:
        return np.zeros(len(stale))
    return np.array([_square_sum(_parameters_sent(results, update) - mean) / scale for update in stale])


class _Measured:
    """The measures of updates: the stored ones, and the others, which are taken as the trainings run."""

    def __init__(self, results: Computation, updates: Updates, needs: Collection[str]) -> None:
        self._results, self._updates = results, updates
        self._told = bool({"loss", "loss_rms"} & set(needs))
        self._by_training: dict[Training, list[int]] = {}
        for i, update in enumerate(updates):
            self._by_training.setdefault(update, []).append(i)
        norms = [digest_of("update-norm", update.digest) for update in updates] if "update_norm" in needs else []
        told = {"signal_energy", "clipped"} & set(needs) and results.messages.steps.tells_clipping
        signals = [digest_of("signal-and-clipping", update.digest) for update in updates] if told else []
        gains = "accuracy_gain" in needs
        clients = [update.client for update in updates] if gains else []
        self._before, self._after = (
            [results.score_digest(model, client) for model, client in zip(models, clients, strict=True)]
            for models in (
                [update.base.digest for update in updates] if gains else [],
                [update.work_digest for update in updates] if gains else [],
            )
        )
        self._norms, self._signals = norms, signals
        unheard = [one.work_digest for one in self._by_training if one.report is None] if self._told else []
        scores = dict.fromkeys([*self._before, *self._after])
        self._records: dict[str, Record] = results.kept.records([*unheard, *norms, *signals, *scores])
        results.found_probes(sum(digest in self._records for digest in scores))
        results.reports(list(self._by_training), self._records)
        rows = len(updates) if "update" in needs else 0
        self._together = digest_of("updates", "".join([update.digest for update in updates[:rows]]))
        kept = results.kept.arrays(self._together) if rows else None
        self._empty_rows = set(range(rows if kept is None else 0))
        self._vectors: NDArray[np.float32] = (
            np.empty((rows, results.layout.parameters), dtype=np.float32) if kept is None else kept["updates"].copy()
        )
        self._scores: tuple[dict[str, tuple[Vector, int]], ...] = {}, {}
        self._running: list[tuple[list[str], Running]] = []

    def missing(self) -> list[Training]:
        return [
            training
            for training, places in self._by_training.items()
            if (self._told and training.report is None)
            or any(self._lacks(i) or self._lacks_signal(i) for i in places)
            or any(digest not in self._records for i in places for digest in self._scores_of(i))
        ]

    def hear(self, training: Training) -> None:
        """Measure a training whose difference is in memory."""
        for i in self._by_training.get(training, ()):
            update = self._updates[i]
            if self._lacks_signal(i):
                kept, clipped = self._results.messages.before_noise(update)
                energy = _square_sum(kept[: self._results.layout.parameters])
                self._records[self._signals[i]] = {"energy": energy, "clipped": float(clipped)}
            if self._lacks(i):
                sent = _parameters_sent(self._results, update)
                if self._norms:
                    self._records[self._norms[i]] = {"norm": float(np.sqrt(_square_sum(sent)))}
                if i in self._empty_rows:
                    self._vectors[i] = sent
                    self._empty_rows.remove(i)
                    if not self._empty_rows:
                        self._results.kept.put_arrays(self._together, {"updates": self._vectors})
            if training.difference is not None:
                vectors = training.base.vector, training.base.vector + training.difference
                self._score(self._scores_of(i), vectors, training.client)

    def finish(self) -> None:
        """Wait for measurements under way, and store them."""
        self._start_scores()
        for digests, running in self._running:
            found = running.results()
            self._records |= {digest: {"accuracy": one.accuracy} for digest, one in zip(digests, found, strict=True)}
        taken = [*self._norms, *self._signals]
        if taken:
            self._results.kept.put_records({digest: self._records[digest] for digest in taken})

    def values(self, need: str) -> NDArray[Any]:
        if need == "update":
            return self._vectors
        return np.array([self._value(need, i) for i in range(len(self._updates))], dtype=np.float64)

    def _value(self, need: str, i: int) -> float:
        if need == "noise_energy":
            return self._results.messages.noise_energy(self._updates[i])
        if need == "signal_energy":
            return self._records[self._signals[i]]["energy"] if self._signals else nan
        if need == "clipped":
            return self._records[self._signals[i]]["clipped"] if self._signals else nan
        if need == "update_norm":
            return self._records[self._norms[i]]["norm"]
        if need == "accuracy_gain":
            return self._records[self._after[i]]["accuracy"] - self._records[self._before[i]]["accuracy"]
        report = self._updates[i].report
        if report is None:
            raise RuntimeError(f"training {self._updates[i].work_digest} has not run")
        return report[need]

    def _lacks(self, i: int) -> bool:
        """Return whether the vector that the server receives is needed for an update."""
        return i in self._empty_rows or bool(self._norms and self._norms[i] not in self._records)

    def _lacks_signal(self, i: int) -> bool:
        return bool(self._signals and self._signals[i] not in self._records)

    def _scores_of(self, i: int) -> tuple[str, ...]:
        return (self._before[i], self._after[i]) if self._before else ()

    def _score(self, digests: tuple[str, ...], models: tuple[Vector, Vector], client: int) -> None:
        """Have a client's base and its own model evaluated, unless that has been done."""
        for scores, digest, model in zip(self._scores if digests else (), digests, models, strict=False):
            if digest not in self._records:
                self._records[digest] = {}
                scores[digest] = model, client
        if len(self._scores[1]) >= _MODELS_AT_ONCE:
            self._start_scores()

    def _start_scores(self) -> None:
        bases, own = self._scores
        if bases or own:
            scores = bases | own  # bases first, so that jobs of one model stand side by side
            self._running.append((list(scores), self._results.start_scores(scores)))
            self._scores = {}, {}


def _parameters_sent(results: Computation, update: Training) -> Vector:
    return results.messages.sent(update)[: results.layout.parameters]


def _square_sum(vector: NDArray[np.floating[Any]]) -> float:
    # Not by a dot product, whose last digits depend on how many threads the library underneath uses.
    return float(np.square(vector, dtype=np.float64).sum())
