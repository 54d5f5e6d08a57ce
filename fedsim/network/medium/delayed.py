"""Transfers that join a medium some time after they are asked for: access, and what a protocol adds to a message."""

import math
from collections.abc import Callable
from typing import Any, ClassVar

from simpy import Environment, Event

from fedsim.clock import call_after, call_when, process_now
from fedsim.network.transfers import Transfer


class DelayedTransfer(Transfer):
    """A transfer that starts after a delay, during which nothing is carried."""

    __slots__ = ("_came_s", "_cancelled", "_share", "_start", "_transfer", "_waited_s", "done")

    def __init__(self, env: Environment, start: Callable[[], Transfer], share: float = 1.0) -> None:
        self.done = Event(env)
        self._start, self._share = start, share
        self._transfer: Transfer | None = None
        self._cancelled = False
        self._came_s, self._waited_s = env.now, 0.0

    def begin(self) -> None:
        if not self._cancelled:
            self._waited_s = self.done.env.now - self._came_s
            self._transfer = self._start()
            call_when(self._transfer.done, self._arrived)

    def cancel(self) -> None:
        self._cancelled = True
        if self._transfer is not None:
            self._transfer.cancel()

    def sent_bits(self) -> float:
        return 0.0 if self._transfer is None else self._share * self._transfer.sent_bits()

    def queued_s(self) -> float:
        """Return the seconds in the medium's queue; the delay is none."""
        return 0.0 if self._transfer is None else self._transfer.queued_s()

    def on_air_s(self, elapsed_s: float) -> float:
        return 0.0 if self._transfer is None else self._transfer.on_air_s(max(0.0, elapsed_s - self._waited_s))

    def arrives_s(self) -> float:
        return math.inf if self._transfer is None else self._transfer.arrives_s()

    def _arrived(self, _event: Event) -> None:
        if not self._cancelled:
            process_now(self.done)


class AfterSetUp(DelayedTransfer):
    """A transfer after the set-up of a connection, which is no part of its elapsed seconds."""

    __slots__ = ()

    def on_air_s(self, elapsed_s: float) -> float:
        return 0.0 if self._transfer is None else self._transfer.on_air_s(elapsed_s)


class DelayedReception(DelayedTransfer):
    __slots__ = ()

    announces_arrival: ClassVar[bool] = True


class Delay:
    """Delays transfers by a constant; those of one instant start in one event, in the order of the calls."""

    def __init__(self, env: Environment, delay_s: float) -> None:
        self.env, self.delay_s = env, delay_s
        self._asked_s = -math.inf
        self._together: list[Callable[[], object]] = []

    def hold(self, begin: Callable[[], object]) -> None:
        now_s: float = self.env.now
        if now_s != self._asked_s:
            self._asked_s, self._together = now_s, []
            call_after(self.env, self.delay_s, self._begin, self._together)
        self._together.append(begin)

    def _begin(self, event: Event) -> None:
        together: Any = event.value
        if together is self._together:
            self._asked_s = -math.inf
        for begin in together:
            begin()
