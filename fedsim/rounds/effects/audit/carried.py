"""The audit's own account of dedicated transfers that were cut short: what the links carried in that time."""

from typing import Final

import numpy as np

from fedsim.arrays import FloatArray, IntArray
from fedsim.history.outcomes import DOWNLINK, PHASES, UPLINK
from fedsim.network.contracts import Links
from fedsim.per_client import at, by_value
from fedsim.rounds.effects.audit.records import Records, refuse

_TOLERANCE: Final = 1e-9
_ULPS: Final = 16


class CarriedBits:
    """The bits of transfers that were cut short, as the links state them."""

    def __init__(self, links: Links) -> None:
        self._links = links

    def check(self, number: int, records: Records) -> None:
        """Check that dedicated transfers that were cut short have carried what their links carried in that time.

        The instant of a cut is known to the resolution of the clock. A client may have set up a connection first.
        """
        for phase, shared in ((DOWNLINK, self._links.shared.down), (UPLINK, self._links.shared.up)):
            cut = np.flatnonzero(records.cut_in == phase)
            if shared or not cut.size:
                continue
            bits, sent = at(records.bits[phase // 2], cut), records.sent_bits[phase // 2, cut]
            slack = _TOLERANCE * bits
            connection = self._links.connection
            wrong, bounds = np.ones(cut.size, dtype=bool), np.zeros((2, cut.size))
            for setup_s in (0.0,) if connection is None else (0.0, connection.setup_s):
                least, most = self._bounds(phase, cut, records, setup_s)
                outside = ~((sent >= least - slack) & (sent <= most + slack))
                bounds[:, wrong] = least[wrong], most[wrong]
                wrong &= outside
            apart = np.zeros(records.client.size, dtype=bool)
            apart[cut[wrong]] = True
            due = dict(zip(cut.tolist(), bounds.T.tolist(), strict=True))

            def told(i: int, phase: int = phase, due: dict[int, list[float]] = due) -> str:
                least, most = due[i]
                return (
                    f"{records.sent_bits[phase // 2, i]} bits of its {PHASES[phase]} in {records.spent_s[phase, i]} s, "
                    f"in which its link carried {least} to {most}"
                )

            refuse("it has not carried what its link carried", apart, number, records, told)

    def _bounds(self, phase: int, cut: IntArray, records: Records, setup_s: float) -> tuple[FloatArray, FloatArray]:
        """Return the least and the most bits that transfers can have carried."""
        elapsed_s, ended_s = records.spent_s[phase, cut], records.ended_s[cut]
        client, bits, up = records.client[cut], at(records.bits[phase // 2], cut), phase == UPLINK
        start_s, air_s, tick_s = ended_s - elapsed_s + setup_s, elapsed_s - setup_s, _ULPS * np.spacing(ended_s)
        links = records.links

        def by(at_s: FloatArray) -> FloatArray:
            sent_s = np.maximum(at_s, 0.0)
            return by_value(
                bits, lambda i, size: links.carried_bits(client[i], records.draw, start_s[i], sent_s[i], size, up=up)
            )

        least, most = by(air_s - tick_s), by(air_s + tick_s)
        return np.where(air_s > tick_s, least, 0.0), np.where(air_s > -tick_s, most, 0.0)
