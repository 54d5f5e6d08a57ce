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
from fedsim.learning.lineage.asked import Model, Update, digest_of
from fedsim.learning.lineage.computed import Computation
from fedsim.learning.lineage.evaluated import Evaluations, Running
from fedsim.learning.store.contracts import Record
from fedsim.measurements import check_needs

Updates = Sequence[Update]

_MODELS_AT_ONCE: Final = 32
"""Clients' own models that are evaluated by one call, beside further trainings."""


def measure(
    evaluations: Evaluations, parameters: int, updates: Updates, needs: Collection[str], newest: Model | None
) -> dict[str, NDArray[Any]]:
    """Return each measure asked for, one element (or row) per update.

    The newest model is computed along with them, so that each update that has gone into it is added up as soon as it
    is there, and let go of.
    """
    check_needs(needs)
    if not needs:
        return {}
    measured = _Measured(evaluations, parameters, updates, needs)
    if missing := measured.missing():
        evaluations.computation.compute([*missing, *([] if newest is None else [newest])], measured.take)
        measured.finish()
    return {need: measured.values(need) for need in needs}


def checked_fresh_weights(count: int, weights: FloatArray | None) -> FloatArray:
    found = np.ones(count) if weights is None else np.asarray(weights, dtype=np.float64)
    if found.shape != (count,) or not np.all(np.isfinite(found) & (found >= 0)):
        raise ValueError(f"fresh_weights: {weights!r}; one finite number >= 0 for each of {count} updates")
    return found


def deviations(
    computation: Computation, parameters: int, fresh: Updates, weights: FloatArray, stale: Updates
) -> FloatArray:
    """Return REFL's Lambda_s of each stale update, shape (len(stale),).

    The rule ``|(u + n m) / (n + 1) - m|^2 / |m|^2`` is worked out as ``|u - m|^2 / ((n + 1)^2 |m|^2)``, which loses no
    digits where u and m are close.
    """
    mean = digest_of("mean", "".join(update.digest for update in fresh), weights.tobytes())
    digests = [digest_of("deviation", mean, update.digest) for update in stale]
    known = computation.known.records(digests)
    if any(digest not in known for digest in digests):
        computation.compute([*fresh, *stale])
        found = _deviations(parameters, fresh, weights, stale)
        known = {digest: {"deviation": value} for digest, value in zip(digests, found.tolist(), strict=True)}
        computation.known.put_records(known)
    return np.array([known[digest]["deviation"] for digest in digests], dtype=np.float64)


def _deviations(parameters: int, fresh: Updates, weights: FloatArray, stale: Updates) -> FloatArray:
    mean = np.zeros(parameters)
    for update, share in zip(fresh, (weights / weights.sum()).tolist(), strict=True):
        mean += share * _sent(update, parameters).astype(np.float64)
    scale = (len(fresh) + 1) ** 2 * _square_sum(mean)
    if scale == 0:
        return np.zeros(len(stale))
    return np.array([_square_sum(_sent(update, parameters) - mean) / scale for update in stale])


class _Measured:
    """The measures of updates: the stored ones, and the others, which are taken as the trainings run."""

    def __init__(self, evaluations: Evaluations, parameters: int, updates: Updates, needs: Collection[str]) -> None:
        self._evaluations, self._parameters, self._updates = evaluations, parameters, updates
        self._known, self._messages = evaluations.computation.known, evaluations.computation.messages
        self._told = bool({"loss", "loss_rms"} & set(needs))
        self._by_training: dict[Update, list[int]] = {}
        for i, update in enumerate(updates):
            self._by_training.setdefault(update, []).append(i)
        norms = [digest_of("update-norm", update.digest) for update in updates] if "update_norm" in needs else []
        told = {"signal_energy", "clipped"} & set(needs) and self._messages.steps.tells_clipping
        signals = [digest_of("signal-and-clipping", update.digest) for update in updates] if told else []
        gains = "accuracy_gain" in needs
        clients = [update.client for update in updates] if gains else []
        self._before, self._after = (
            [evaluations.digest(model, client) for model, client in zip(models, clients, strict=True)]
            for models in (
                [update.base.digest for update in updates] if gains else [],
                [update.work_digest for update in updates] if gains else [],
            )
        )
        self._norms, self._signals = norms, signals
        untold = [one.work_digest for one in self._by_training if one.report is None] if self._told else []
        scores = dict.fromkeys([*self._before, *self._after])
        self._records: dict[str, Record] = self._known.records([*untold, *norms, *signals, *scores])
        evaluations.probes_found += sum(digest in self._records for digest in scores)
        for update in self._by_training:
            if update.report is None:
                update.report = self._records.get(update.work_digest)
        rows = len(updates) if "update" in needs else 0
        self._together = digest_of("updates", "".join([update.digest for update in updates[:rows]]))
        kept = self._known.arrays(self._together) if rows else None
        self._empty_rows = set(range(rows if kept is None else 0))
        self._vectors: NDArray[np.float32] = (
            np.empty((rows, parameters), dtype=np.float32) if kept is None else kept["updates"].copy()
        )
        self._scores: tuple[dict[str, tuple[Vector, int]], ...] = {}, {}
        self._running: list[tuple[list[str], Running]] = []

    def missing(self) -> list[Update]:
        return [
            training
            for training, places in self._by_training.items()
            if (self._told and training.report is None)
            or any(self._lacks(i) or self._lacks_signal(i) for i in places)
            or any(digest not in self._records for i in places for digest in self._scores_of(i))
        ]

    def take(self, update: Update) -> None:
        """Measure an update whose result is in memory."""
        result = update.result
        if result is None:
            return
        for i in self._by_training.get(update, ()):
            if self._lacks_signal(i):
                before, clipped = self._messages.before_noise(update, result.difference)
                energy = _square_sum(before[: self._parameters])
                self._records[self._signals[i]] = {"energy": energy, "clipped": float(clipped)}
            if self._lacks(i):
                sent = result.sent[: self._parameters]
                if self._norms:
                    self._records[self._norms[i]] = {"norm": float(np.sqrt(_square_sum(sent)))}
                if i in self._empty_rows:
                    self._vectors[i] = sent
                    self._empty_rows.remove(i)
                    if not self._empty_rows:
                        self._known.put_arrays(self._together, {"updates": self._vectors})
            if digests := self._scores_of(i):
                base = update.base.vector
                self._score(digests, (base, base + result.difference), update.client)

    def finish(self) -> None:
        """Wait for measurements under way, and store them."""
        self._start_scores()
        for digests, running in self._running:
            found = running.results()
            self._records |= {digest: {"accuracy": one.accuracy} for digest, one in zip(digests, found, strict=True)}
        taken = [*self._norms, *self._signals]
        if taken:
            self._known.put_records({digest: self._records[digest] for digest in taken})

    def values(self, need: str) -> NDArray[Any]:
        if need == "update":
            return self._vectors
        return np.array([self._value(need, i) for i in range(len(self._updates))], dtype=np.float64)

    def _value(self, need: str, i: int) -> float:
        if need == "noise_energy":
            return self._messages.noise_energy(self._updates[i])
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
        for scores, digest, model in zip(self._scores, digests, models, strict=True):
            if digest not in self._records:
                self._records[digest] = {}
                scores[digest] = model, client
        if len(self._scores[1]) >= _MODELS_AT_ONCE:
            self._start_scores()

    def _start_scores(self) -> None:
        bases, own = self._scores
        if bases or own:
            scores = bases | own  # bases first, so that jobs of one model stand side by side
            self._running.append((list(scores), self._evaluations.start(scores)))
            self._scores = {}, {}


def _sent(update: Update, parameters: int) -> Vector:
    if update.result is None:
        raise RuntimeError(f"training {update.work_digest} has not run")
    return update.result.sent[:parameters]


def _square_sum(vector: NDArray[np.floating[Any]]) -> float:
    # Not by a dot product, whose last digits depend on how many threads the library underneath uses.
    return float(np.square(vector, dtype=np.float64).sum())
