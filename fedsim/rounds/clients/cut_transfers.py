"""Dedicated transfers of one cohort that were cut short, until their bits are asked for."""

import numpy as np

from fedsim.arrays import FloatArray
from fedsim.rounds.clients.interruptions import Carried


class CutTransfers:
    """Works out the bits of cut transfers together, since one call for many costs little more than one for one."""

    def __init__(self, carried: Carried) -> None:
        self._carried = carried
        self.new: list[tuple[int, int, float, float]] = []

    def add(self, phase: int, i: int, start_s: float, elapsed_s: float) -> None:
        self.new.append((phase, i, start_s, elapsed_s))

    def count(self, sent_bits: FloatArray) -> None:
        """Lower the bits down and up, shape (2, n), to those carried by the transfers noted since the last call."""
        new, self.new = self.new, []
        for phase in {phase for phase, *_ in new}:
            member, start_s, elapsed_s = zip(*[rest for at, *rest in new if at == phase], strict=True)
            members = np.array(member, dtype=np.int64)
            carried = self._carried(phase, members, np.array(start_s), np.array(elapsed_s))
            sent_bits[phase // 2, members] = np.minimum(carried, sent_bits[phase // 2, members])
