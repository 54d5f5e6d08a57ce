"""The same instant on a floating-point clock, and waiting for it."""

import math
from collections.abc import Callable, Generator
from heapq import heappop, heappush
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray
from simpy import Environment as Environment, Event as Event
from simpy.core import StopSimulation
from simpy.events import NORMAL, URGENT

Waiting = Generator[Event, Any, None]
_new: Final = Event.__new__


class Clock(Environment):
    """SimPy's environment, whose instant is in a slot: it is read often, and SimPy calls a function for that."""

    __slots__ = ("_now",)


Clock.now = vars(Clock)["_now"]  # type: ignore[method-assign]


def run_until(env: Environment, last: Event) -> None:
    """Run a clock up to an event, as SimPy's `Environment.run`, but without a call of a function for each event."""
    queue = env._queue
    call_when(last, StopSimulation.callback)
    try:
        while True:
            env._now, _, _, event = heappop(queue)
            callbacks, event.callbacks = event.callbacks, None  # type: ignore[assignment]  # as SimPy does
            for callback in callbacks:
                callback(event)
            if not event._ok and not hasattr(event, "_defused"):
                raise event._value
    except StopSimulation:
        return


def call_when(event: Event, callback: Callable[[Event], None]) -> None:
    """Call a function when an event is processed; an event that is already processed calls nothing."""
    if event.callbacks is not None:
        event.callbacks.append(callback)


def call_after(env: Environment, delay_s: float, callback: Callable[[Event], None], value: object = None) -> Event:
    """Call a function after a delay, as one event of its own, which is returned."""
    if delay_s < 0:
        raise ValueError(f"a delay of {delay_s} s is not allowed; it must be at least 0")
    event = _new(Event)
    event.env = env
    event.callbacks = [callback]
    event._value = value
    event._ok = True
    # As SimPy's `Timeout` and `Environment.schedule`, in one call.
    heappush(env._queue, (env._now + delay_s, NORMAL, next(env._eid), event))
    return event


def call_next(env: Environment, callback: Callable[[Event], None]) -> None:
    """Call a function at this instant, after what happens now and before every other event of the instant."""
    event = Event(env)
    event._ok, event._value = True, None
    event.callbacks.append(callback)
    env.schedule(event, priority=URGENT)


def happen_after(event: Event, delay_s: float) -> None:
    """Have an event happen after a delay that begins now; until then it is not triggered, unlike SimPy's `Timeout`."""
    event._ok = True
    event.callbacks.insert(0, _trigger)
    env = event.env
    heappush(env._queue, (env._now + delay_s, NORMAL, next(env._eid), event))


def _trigger(event: Event) -> None:
    event._value = None


def silence(event: Event) -> None:
    """Have an event that was to happen pass without being triggered, and without a call of what waits for it."""
    callbacks = event.callbacks
    # A process that waits for the event finds itself in the list until then, and may be interrupted.
    callbacks.insert(0, lambda _event: callbacks.clear())


def process_now(event: Event) -> None:
    """Trigger an event and call what waits for it as part of the present one, so that it costs no event of its own."""
    event._ok, event._value = True, None
    callbacks, event.callbacks = event.callbacks, None  # type: ignore[assignment]  # as SimPy does
    for callback in callbacks:
        callback(event)


def wait_until(env: Environment, time_s: float) -> Waiting:
    """Wait for an instant; one that is past has come."""
    yield env.timeout(max(0.0, time_s - env.now))


TIE_ULPS: Final = 4
TIE: Final = TIE_ULPS * math.ulp(1.0)
"""The same as a share of a time."""
_AFTER_ALL_OTHERS: Final = 3


class LastOfInstant(Event):
    """An event that comes after every ordinary event of the same instant; `place` is that among its like."""

    def __init__(self, env: Environment, delay_s: float, *, place: Literal[-1, 0, 1] = 0) -> None:
        super().__init__(env)
        self._ok, self._value = True, None
        # SimPy types priorities as its own two levels but orders by any integer.
        env.schedule(self, priority=_AFTER_ALL_OTHERS + place, delay=delay_s)  # type: ignore[arg-type]


def call_after_others(env: Environment, delay_s: float, callback: Callable[[Event], None]) -> None:
    """Call a function after a delay and all ordinary events of that instant, before a `LastOfInstant` of place 0."""

    def call(event: Event) -> None:
        if (tied_s := tie_s(env)) and env._queue[0][1] <= NORMAL:
            call_when(LastOfInstant(env, tied_s, place=-1), call)
        else:
            callback(event)

    call_when(LastOfInstant(env, delay_s, place=-1), call)


def first_of(env: Environment, enough: Event, limit: LastOfInstant) -> Waiting:
    """Wait until an event or a limit, whichever is first; events of the limit's instant still happen before the end."""
    yield enough | limit
    while not enough.triggered and (tied_s := tie_s(env)):
        yield LastOfInstant(env, tied_s)


def rest_of_instant(env: Environment) -> Waiting:
    """Wait for all other events of the present instant."""
    yield LastOfInstant(env, 0.0)
    while tied_s := tie_s(env):
        yield LastOfInstant(env, tied_s)


def tie_s(env: Environment) -> float:
    """Return how long until the next event if that counts as the present instant, though it is later; 0 if not."""
    next_s = env.peek() - env.now
    return float(next_s) if next_s <= TIE_ULPS * math.ulp(env.now) else 0.0


def has_come(until_s: float, time_s: float, sums: int) -> bool:
    """Return whether an instant has come on a clock that shows the sum of as many times, each of them rounded.

    Eight times 0.1 s are less than 0.8 s, and three times 0.1 s more than 0.3 s.
    """
    return until_s - time_s <= TIE_ULPS * sums * math.ulp(time_s)


def delay_until(env: Environment, time_s: float) -> float:
    """Return the delay after which the clock shows an instant; 0 if it is past.

    The sum of clock and delay is rounded. Where no delay meets the instant, the last one that ends before it is given.
    """
    delay_s = time_s - env.now
    if delay_s <= 0:
        return 0.0
    while env.now + delay_s < time_s:
        delay_s = math.nextafter(delay_s, math.inf)
    while env.now + delay_s > time_s:
        delay_s = math.nextafter(delay_s, 0.0)
    return delay_s


def instants(times_s: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the instant of each time, numbered from 0, shape (n,); times within `TIE_ULPS` are one instant."""
    order = np.argsort(times_s, kind="stable")
    in_order_s = times_s[order]
    number = np.zeros(times_s.size, dtype=np.int64)
    number[order[1:]] = np.cumsum(np.diff(in_order_s) > TIE_ULPS * np.spacing(in_order_s[1:]))
    return number
