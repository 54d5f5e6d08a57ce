"""Links that fail while a cohort is at work: transfers that are lost, and uploads that wait for their link."""

import math
from collections.abc import Callable, Generator
from typing import Any, Final

import numpy as np
from simpy import Environment, Event, Interrupt

from fedsim.arrays import FloatArray, IntArray
from fedsim.clock import TIE_ULPS
from fedsim.devices.availability.on_off import OnOffProcess
from fedsim.network.contracts import Transfer

_EPSILON: Final = float(np.finfo(np.float64).eps)


class LinkOutages:
    """The links of one cohort's members, by position.

    Parameters
    ----------
    env : Environment
    links_up : when the links of the crowd work
    client : ids of the members, shape (n,)
    since_s : an instant, now or before, at which all of these links worked
    """

    def __init__(self, env: Environment, links_up: OnOffProcess, client: IntArray, since_s: float) -> None:
        self._env, self._links_up, self._client = env, links_up, client
        self._fails_s: list[float] = (since_s + links_up.state(client, since_s)[1]).tolist()

    def known_s(self, planned_s: FloatArray) -> FloatArray:
        """Return what is known in advance of the phases' lengths: nothing of an upload that may wait for its link."""
        known_s = planned_s.copy()
        known_s[-1, np.array(self._fails_s) - self._env.now <= planned_s[:-1].sum(axis=0)] = np.inf
        return known_s

    def within_s(self, downlink_s: FloatArray) -> FloatArray:
        """Return how long from now on the links fail that do so during planned downlinks; `inf` for the others.

        A downlink that ends at the instant at which its link fails has ended.
        """
        fails_s, ends_s = np.array(self._fails_s), self._env.now + downlink_s
        left_s = np.maximum(fails_s - self._env.now, 0.0)
        return np.where(ends_s > fails_s * (1.0 + TIE_ULPS * _EPSILON), left_s, np.inf)

    def fails_after_s(self, i: int) -> float:
        """Return how long from now on a member's link fails: one that works, or will after `hold_s`."""
        return max(0.0, self._fails_s[i] - self._env.now)

    def hold_s(self, i: int) -> float:
        """Return how long an upload that is due now waits for its link."""
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
    """A transfer that begins when its link is back; a `Transfer`.

    Parameters
    ----------
    env : Environment
    wait_s : how long the link is still down
    begin : starts the transfer; returns it, or how long it takes
    bits : what it carries in that time
    """

    def __init__(self, env: Environment, wait_s: float, begin: Callable[[], Transfer | float], bits: float) -> None:
        self.done: Event = env.event()
        self._env, self._since_s, self._wait_s, self._bits = env, env.now, wait_s, bits
        self._begin, self._length_s = begin, math.inf
        self._flow: Transfer | None = None
        self._process = env.process(self._carry())

    def cancel(self) -> None:
        """Give up."""
        if self._flow is not None:
            self._flow.cancel()
        if self._process.is_alive:
            self._process.interrupt()

    def sent_bits(self) -> float:
        """Return how many bits have been carried so far: of a time that is known, in proportion to it."""
        if self._flow is not None:
            return self._flow.sent_bits()
        if self.done.triggered:
            return self._bits
        return self._bits * max(0.0, (self._env.now - self._since_s - self._wait_s) / self._length_s)

    def queued_s(self) -> float:
        """Return how long it has waited for its link, and then for a medium to be free."""
        held_s = min(self._wait_s, self._env.now - self._since_s)
        return held_s if self._flow is None else held_s + self._flow.queued_s()

    def _carry(self) -> Generator[Event, Any, None]:
        try:
            yield self._env.timeout(self._wait_s)
            taken = self._begin()
            if isinstance(taken, float):
                self._length_s = taken
                yield self._env.timeout(taken)
            else:
                self._flow = taken
                yield taken.done
        except Interrupt:
            return
        self.done.succeed()
