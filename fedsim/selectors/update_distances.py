"""Distances between the last updates of clients, in one matrix that grows with the clients that have delivered.

A round's updates change one row and one column each. Memory: n^2 numbers of 8 bytes for n clients that have delivered,
and their updates in single precision.
"""

from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from fedsim.arrays import BoolArray, FloatArray, IntArray
from fedsim.errors import SelectorError
from fedsim.selectors.contracts import Reports
from fedsim.selectors.noise import Noise, stated_energy
from fedsim.selectors.sampling import grown

Metric = Literal["angle", "euclidean", "squared-euclidean", "manhattan"]

_BLOCK: Final = 1 << 22
_CITY_BLOCK: Final = "cityblock"


class UpdateDistances:
    """Distances between the last updates of clients."""

    def __init__(self, metric: Metric, noise: Noise = "as-sent") -> None:
        if noise == "corrected" and metric == "manhattan":
            raise SelectorError("noise: 'corrected' is not allowed for the distance 'manhattan', only 'as-sent'")
        self.metric, self.noise = metric, noise
        self.heard: IntArray = np.zeros(0, dtype=np.int64)
        self._row: IntArray = np.zeros(0, dtype=np.int64)
        self._update: NDArray[np.float32] = np.zeros((0, 0), dtype=np.float32)
        self._square: FloatArray = np.zeros(0)
        self._distance: FloatArray = np.zeros((0, 0))

    def learn(self, reports: Reports) -> None:
        """Store the delivered updates that are finite; of several updates of a client the last one."""
        update = reports.measured.get("update", np.zeros(0))
        if update.ndim != 2 or not update.shape[1]:
            return
        measured = reports.delivered & np.isfinite(update).all(axis=1)
        known = np.flatnonzero(measured)
        known = known[_last_of_each(reports.client[known])]
        client = reports.client[known]
        if not client.size:
            return
        self._make_room(client, update.shape[1])
        row = self._row[client]
        self._update[row] = update[known]
        self._square[row] = np.einsum("ij,ij->i", update[known], update[known], dtype=np.float64)
        if self.noise == "corrected":
            self._square[row] -= stated_energy(reports, measured, "distances of updates")[known]
        distance = self._rows(row)
        self._distance[row, : self.heard.size] = distance
        self._distance[: self.heard.size, row] = distance.T

    def known(self, client: IntArray) -> BoolArray:
        """Return which of these clients have delivered an update, shape of ``client``."""
        return np.asarray(self._rows_of(client) >= 0)

    def between(self, one: IntArray, other: IntArray) -> FloatArray:
        """Return distances between clients; the update of a client without a delivery is zero."""
        left, right = self._rows_of(one), self._rows_of(other)
        if not self.heard.size:
            return np.zeros((one.size, other.size))
        if _is_range(left) and _is_range(right):
            return self._distance[: left.size, : right.size]
        distance: FloatArray = self._distance[np.ix_(np.maximum(left, 0), np.maximum(right, 0))]
        if (left < 0).any() or (right < 0).any():
            length = self._lengths()
            distance[left < 0] = np.where(right >= 0, length[right], 0.0)
            distance[:, right < 0] = np.where(left >= 0, length[left], 0.0)[:, None]
        return distance

    def sorted(self, client: IntArray) -> IntArray:
        """Return these clients in the order of their first updates, clients without an update last."""
        row = self._rows_of(client)
        return np.asarray(client[np.argsort(np.where(row < 0, self.heard.size, row), kind="stable")])

    def _lengths(self) -> FloatArray:
        """Return the distance of each stored update from zero, shape (n,)."""
        if self.metric == "angle":
            return np.zeros(self.heard.size)
        if self.metric == "manhattan":
            return np.asarray(np.abs(self._update[: self.heard.size]).sum(axis=1, dtype=np.float64))
        square = np.maximum(self._square[: self.heard.size], 0.0)
        return np.asarray(square if self.metric == "squared-euclidean" else np.sqrt(square))

    def _rows(self, row: IntArray) -> FloatArray:
        """Return distances from these rows to all rows, shape (rows, n), in double precision and by blocks."""
        fresh = self._update[row].astype(np.float64)
        step = max(_BLOCK // max(fresh.shape[1], 1), 1)
        parts = []
        for start in range(0, self.heard.size, step):
            block = self._update[start : min(start + step, self.heard.size)].astype(np.float64)
            parts.append(cdist(fresh, block, _CITY_BLOCK) if self.metric == "manhattan" else fresh @ block.T)
        found = np.concatenate(parts, axis=1)
        if self.metric == "manhattan":
            return np.asarray(found)
        square = self._square[: self.heard.size]
        if self.metric == "angle":
            square = np.maximum(square, 0.0)
            length = np.sqrt(np.outer(square[row], square))
            cosine = np.divide(found, length, out=np.ones_like(found), where=length > 0)
            angle = np.arccos(np.clip(cosine, -1.0, 1.0))
            angle[np.arange(row.size), row] = 0.0
            return np.asarray(angle)
        squared = np.maximum(square[row, None] + square - 2.0 * found, 0.0)
        squared[np.arange(row.size), row] = 0.0
        return np.asarray(squared if self.metric == "squared-euclidean" else np.sqrt(squared))

    def _rows_of(self, client: IntArray) -> IntArray:
        inside = client < self._row.size
        row = np.full(client.size, -1)
        row[inside] = self._row[client[inside]]
        return row

    def _make_room(self, client: IntArray, length: int) -> None:
        """Assign a row to each client; storage that is full is doubled."""
        self._row = grown(self._row, int(client.max()) + 1, -1)
        fresh = client[self._row[client] < 0]
        count = self.heard.size + fresh.size
        self._row[fresh] = np.arange(self.heard.size, count)
        self.heard = np.concatenate([self.heard, fresh])
        held = self._square.size
        if count > held:
            more = max(count, 2 * held) - held
            self._update = np.concatenate([self._update.reshape(held, length), np.zeros((more, length), np.float32)])
            self._square = np.pad(self._square, (0, more))
            self._distance = np.pad(self._distance, ((0, more), (0, more)))


def _last_of_each(client: IntArray) -> IntArray:
    """Return the position of each client's last occurrence, in their order."""
    latest = client.size - 1 - np.unique(client[::-1], return_index=True)[1]
    return np.sort(latest)


def _is_range(row: IntArray) -> bool:
    return bool(np.array_equal(row, np.arange(row.size)))
