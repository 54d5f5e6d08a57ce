"""Sizes, samples and seconds that are stated from outside for the clients of one cohort."""

import numpy as np

from fedsim.arrays import FloatArray, IntArray
from fedsim.devices import ComputeTimes
from fedsim.per_client import Values, at, is_one
from fedsim.rounds import Workload
from fedsim.rounds.workload import Narrow


class Stated:
    """What is stated of the coming cohort, by name; each value is for all clients, or one for each of the crowd."""

    def __init__(self, clients: int) -> None:
        self._clients = clients
        self._values: dict[str, Values] = {}

    def put(self, client: IntArray, values: dict[str, Values]) -> None:
        self._values = {}
        for name, value in values.items():
            if is_one(value):
                self._values[name] = float(value)
            else:
                self._values[name] = of_crowd = np.zeros(self._clients)
                of_crowd[client] = value

    def clear(self) -> None:
        self._values = {}

    def of(self, name: str, client: IntArray) -> Values | None:
        values = self._values.get(name)
        return None if values is None else at(values, client)


class StatedWorkload(Workload):
    def __init__(self, usual: Workload, stated: Stated) -> None:
        vars(self).update(vars(usual))
        self._stated = stated

    def counted(self, client: IntArray) -> FloatArray | None:
        """Return the samples that are stated, in place of operations too; None where none are."""
        stated = self._stated.of("samples", client)
        return None if stated is None else np.broadcast_to(np.asarray(stated, dtype=np.float64), client.shape).copy()

    def of(self, client: IntArray, narrow: Narrow | None = None) -> tuple[Values, Values, FloatArray]:
        down, up, samples = super().of(client, narrow)
        stated_down, stated_up = self._stated.of("down_bits", client), self._stated.of("up_bits", client)
        stated_samples = self.counted(client)
        if stated_down is not None:
            down = stated_down
        if stated_up is not None:
            up = self._sent(stated_up)
        if stated_samples is not None:
            samples = stated_samples + at(self.beside_samples, client)
        return down, up, samples

    def _sent(self, update_bits: Values) -> Values:
        """Return the sizes of the messages up with updates of some sizes: masked, with numbers beside them."""
        if is_one(update_bits):
            return self.sent_bits(update_bits) + self.beside_bits
        return np.array([self.sent_bits(bits) for bits in np.asarray(update_bits).tolist()]) + self.beside_bits


class StatedComputeTimes:
    def __init__(self, law: ComputeTimes, stated: Stated) -> None:
        self._law, self._stated = law, stated

    def duration_s(self, client: IntArray, draw: int, samples: FloatArray) -> FloatArray:
        stated_s = self._stated.of("compute_s", client)
        if stated_s is None:
            return self._law.duration_s(client, draw, samples)
        return np.broadcast_to(np.asarray(stated_s, dtype=np.float64), client.shape).copy()

    def expected_s(self, samples: FloatArray) -> FloatArray:
        return self._law.expected_s(samples)
