"""Measurements of delivered updates, `fedsim.measurements.MEASUREMENTS`, and deviations of stale ones from fresh.

Measurements are stored: a report under the digest of its training, norms, scores and deviations under digests of their
own, update vectors as arrays. A training runs only if something that is asked for has never been measured.
"""

import itertools
from collections.abc import Collection, Sequence
from concurrent.futures import Future
from math import nan
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from fedsim.arrays import FloatArray, Vector
from fedsim.learning.lineage.asked import Model, Update, digest_of
from fedsim.learning.lineage.computed import Computation
from fedsim.learning.lineage.evaluated import Evaluations, Found
from fedsim.learning.store.contracts import Record
from fedsim.measurements import check_needs

Updates = Sequence[Update]

_RECORDED: Final = {
    "loss": ("report", "loss"),
    "loss_rms": ("report", "loss_rms"),
    "update_norm": ("norm", "norm"),
    "signal_energy": ("signal", "energy"),
    "clipped": ("signal", "clipped"),
}
"""Measures that lie in a record, with its kind and their names there."""
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
        self._computation, self._known = evaluations.computation, evaluations.computation.known
        self._scores: dict[str, dict[str, tuple[Vector, int]]] = {"before": {}, "after": {}}
        self._by_training: dict[Update, list[int]] = {}
        for i, update in enumerate(updates):
            self._by_training.setdefault(update, []).append(i)
        self._digests: dict[str, list[str]] = {}
        """Of the records of each kind, by the places of updates."""
        if {"loss", "loss_rms"} & set(needs):
            self._digests["report"] = [update.work_digest for update in updates]
        if "update_norm" in needs:
            self._digests["norm"] = [digest_of("update-norm", update.digest) for update in updates]
        if {"signal_energy", "clipped"} & set(needs) and self._computation.steps.tells_clipping:
            self._digests["signal"] = [digest_of("signal-and-clipping", update.digest) for update in updates]
        if "accuracy_gain" in needs:
            self._digests["before"] = [evaluations.digest(update.base.digest, update.client) for update in updates]
            self._digests["after"] = [evaluations.digest(update.work_digest, update.client) for update in updates]
        self._records: dict[str, Record] = {one.work_digest: one.report for one in updates if one.report is not None}
        asked = dict.fromkeys(itertools.chain(*self._digests.values()))
        self._records |= self._known.records([digest for digest in asked if digest not in self._records])
        scored = {digest for kind in self._scores for digest in self._digests.get(kind, ())}
        evaluations.probes_found += len(scored & self._records.keys())
        for update in self._by_training:
            update.report = self._records.get(update.work_digest)
        rows = len(updates) if "update" in needs else 0
        self._together = digest_of("updates", "".join([update.digest for update in updates[:rows]]))
        kept = self._known.arrays(self._together) if rows else None
        self._empty_rows = set(range(rows if kept is None else 0))
        self._vectors: NDArray[np.float32] = (
            np.empty((rows, parameters), dtype=np.float32) if kept is None else kept["updates"].copy()
        )
        self._running: list[tuple[list[str], Future[Found]]] = []

    def missing(self) -> list[Update]:
        return [
            training
            for training, places in self._by_training.items()
            if any(i in self._empty_rows or self._lacks(i, *self._digests) for i in places)
        ]

    def take(self, update: Update) -> None:
        result = update.result
        if result is None or update.report is None:
            return
        self._records[update.work_digest] = update.report
        for i in self._by_training.get(update, ()):
            if self._lacks(i, "signal"):
                # Neither what earlier messages left out nor compression is part of it.
                before = self._computation.steps.clipped(result.difference, update.release)
                clipped = before is not result.difference and not np.array_equal(before, result.difference)
                energy = _square_sum(before[: self._parameters])
                self._records[self._digests["signal"][i]] = {"energy": energy, "clipped": float(clipped)}
            sent = result.sent[: self._parameters]
            if self._lacks(i, "norm"):
                self._records[self._digests["norm"][i]] = {"norm": float(np.sqrt(_square_sum(sent)))}
            if i in self._empty_rows:
                self._vectors[i] = sent
                self._empty_rows.remove(i)
                if not self._empty_rows:
                    self._known.put_arrays(self._together, {"updates": self._vectors})
            for kind, scores in self._scores.items():
                if self._lacks(i, kind):
                    base, digest = update.base.vector, self._digests[kind][i]
                    self._records[digest] = {}  # asked for
                    scores[digest] = base if kind == "before" else base + result.difference, update.client
            if len(self._scores["after"]) >= _MODELS_AT_ONCE:
                self._start_scores()

    def finish(self) -> None:
        self._start_scores()
        for digests, running in self._running:
            found = self._evaluations.ended(running)
            self._records |= {digest: {"accuracy": one.accuracy} for digest, one in zip(digests, found, strict=True)}
        taken = [*self._digests.get("norm", ()), *self._digests.get("signal", ())]
        if taken:
            self._known.put_records({digest: self._records[digest] for digest in taken})

    def values(self, need: str) -> NDArray[Any]:
        if need == "update":
            return self._vectors
        return np.array([self._value(need, i) for i in range(len(self._updates))], dtype=np.float64)

    def _value(self, need: str, i: int) -> float:
        if need == "noise_energy":
            update = self._updates[i]
            return self._computation.steps.noise_energy(update.release, self._computation.local.part(update))
        if need == "accuracy_gain":
            before, after = (self._records[self._digests[kind][i]]["accuracy"] for kind in self._scores)
            return after - before
        kind, name = _RECORDED[need]
        return self._records[self._digests[kind][i]][name] if kind in self._digests else nan

    def _lacks(self, i: int, *kinds: str) -> bool:
        return any(self._digests[kind][i] not in self._records for kind in kinds if kind in self._digests)

    def _start_scores(self) -> None:
        scores = self._scores["before"] | self._scores["after"]  # jobs of one base stand side by side
        if scores:
            self._running.append((list(scores), self._evaluations.start(scores)))
            self._scores = {"before": {}, "after": {}}


def _sent(update: Update, parameters: int) -> Vector:
    if update.result is None:
        raise RuntimeError(f"training {update.work_digest} has not run")
    return update.result.sent[:parameters]


def _square_sum(vector: NDArray[np.floating[Any]]) -> float:
    # Not by a dot product, whose last digits depend on how many threads the library underneath uses.
    return float(np.square(vector, dtype=np.float64).sum())
