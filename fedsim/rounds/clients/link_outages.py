"""Link failures during participations: lost transfers, and uploads that wait for their link."""

import math
from collections.abc import Callable, Generator, Mapping
from typing import Any, Final

import numpy as np
from simpy import Environment, Event, Interrupt

from fedsim.arrays import FloatArray, IntArray
from fedsim.clock import TIE_ULPS
from fedsim.devices.availability.on_off import OnOffProcess
from fedsim.history.outcomes import DOWNLINK, PHASES
from fedsim.network.transfers import Transfer

PhaseStart = tuple[Transfer | None, float]
"""A transfer that has started, of unknown duration (`inf`); or None and the seconds that a phase takes."""
PhaseHook = Callable[[int], PhaseStart]
"""Called with a client's position in the cohort at the start of a phase."""

_EPSILON: Final = float(np.finfo(np.float64).eps)


class LinkOutages:
    """Outages of the links of one cohort's clients, by position in the cohort."""

    def __init__(self, env: Environment, links_up: OnOffProcess, client: IntArray, since_s: float) -> None:
        self._env, self._links_up, self._client = env, links_up, client
        self._fails_s: list[float] = (since_s + links_up.state(client, since_s)[1]).tolist()

    def known_s(self, planned_s: FloatArray) -> FloatArray:
        """Return the durations of the phases that are known in advance.

        The duration of an upload that may wait for its link is unknown, `inf`.
        """
        known_s = planned_s.copy()
        known_s[-1, np.array(self._fails_s) - self._env.now <= planned_s[:-1].sum(axis=0)] = np.inf
        return known_s

    def fails_within_s(self, downlink_s: FloatArray) -> FloatArray:
        """Return the seconds from now until links fail during a planned downlink; `inf` for the others.

        A downlink that ends at the instant of the failure has ended.
        """
        fails_s, ends_s = np.array(self._fails_s), self._env.now + downlink_s
        left_s = np.maximum(fails_s - self._env.now, 0.0)
        return np.where(ends_s > fails_s * (1.0 + TIE_ULPS * _EPSILON), left_s, np.inf)

    def fails_after_s(self, i: int) -> float:
        """Return the seconds from now until the link of client i fails; it works now, or does after `wait_s`."""
        return max(0.0, self._fails_s[i] - self._env.now)

    def wait_s(self, i: int) -> float:
        """Return the seconds for which an upload of client i that is due now waits for its link."""
        now_s: float = self._env.now
        back_s = now_s
        while self._fails_s[i] <= back_s < math.inf:
            works, left_s = self._links_up.state(self._client[i : i + 1], back_s)
            change_s = max(back_s + float(left_s[0]), math.nextafter(back_s, math.inf))
            if works[0]:
                self._fails_s[i] = change_s
            else:
                back_s = change_s
        return back_s - now_s


class DeferredTransfer(Transfer):
    """A transfer that starts when its link is back."""

    def __init__(
        self,
        env: Environment,
        wait_s: float,
        start: Callable[[], PhaseStart],
        bits: Callable[[], float],
        carried: Callable[[float, float], float],
    ) -> None:
        self.done: Event = env.event()
        self._env, self._since_s, self._wait_s, self._bits = env, env.now, wait_s, bits
        self._start, self._bits_carried = start, carried
        self._began_s = math.inf
        self._transfer: Transfer | None = None
        self._process = env.process(self._carry())

    def cancel(self) -> None:
        if self._transfer is not None:
            self._transfer.cancel()
        if self._process.is_alive:
            self._process.interrupt()

    def sent_bits(self) -> float:
        if self._transfer is not None:
            return self._transfer.sent_bits()
        if self.done.triggered:
            return self._bits()
        if self._began_s == math.inf:
            return 0.0
        elapsed_s = max(0.0, self._env.now - self._since_s - self._wait_s)
        return min(self._bits(), self._bits_carried(self._began_s, elapsed_s))

    def queued_s(self) -> float:
        """Return the seconds of waiting for the link and, after that, for a free medium."""
        waited_s = min(self._wait_s, self._env.now - self._since_s)
        return waited_s if self._transfer is None else waited_s + self._transfer.queued_s()

    def _carry(self) -> Generator[Event, Any, None]:
        try:
            yield self._env.timeout(self._wait_s)
            self._transfer, duration_s = self._start()
            self._began_s = self._env.now
            yield self._env.timeout(duration_s) if self._transfer is None else self._transfer.done
        except Interrupt:
            return
        self.done.succeed()


def waits_of(hooks: Mapping[int, PhaseHook]) -> list[tuple[int, int, PhaseHook | None]]:
    """Return the waits of a participation: first phase, phase after the last, and the hook at the start if any."""
    if not hooks:
        return [(DOWNLINK, len(PHASES), None)]
    starts = sorted({0, *hooks, *(phase + 1 for phase in hooks)} - {len(PHASES)})
    return [(first, end, hooks.get(first)) for first, end in zip(starts, [*starts[1:], len(PHASES)], strict=True)]
