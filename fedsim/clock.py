"""The same instant on a floating-point clock, and waiting for it."""

import math
from collections.abc import Callable, Generator
from heapq import heappush
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from simpy import Environment, Event
from simpy.events import NORMAL, URGENT

__all__ = [
    "TIE_ULPS",
    "Clock",
    "Environment",
    "Event",
    "LastOfInstant",
    "Waiting",
    "call_after",
    "call_next",
    "call_when",
    "delay_until",
    "first_of",
    "happen_after",
    "instants",
    "process_now",
    "rest_of_instant",
    "silence",
    "tie_s",
    "wait_until",
]

Waiting = Generator[Event, Any, None]


class Clock(Environment):
    """SimPy's environment, whose instant is in a slot: it is read often, and SimPy calls a function for that.

    Examples
    --------
    >>> clock = Clock()
    >>> upload = call_after(clock, 2.5, lambda event: print(f"{event.value} at {clock.now} s"), value="delivered")
    >>> clock.run(until=10.0)
    delivered at 2.5 s
    >>> clock.now
    10.0
    """

    __slots__ = ("_now",)


Clock.now = vars(Clock)["_now"]  # type: ignore[method-assign]


def call_when(event: Event, callback: Callable[[Event], None]) -> None:
    """Call a function when an event is processed; an event that is already processed calls nothing.

    Parameters
    ----------
    event : that is waited for
    callback : gets the event

    Examples
    --------
    >>> clock = Clock()
    >>> upload = clock.timeout(1.5, value="an update")
    >>> call_when(upload, lambda event: print(event.value, "at", clock.now))
    >>> clock.run()
    an update at 1.5
    >>> call_when(upload, print)  # it is processed already
    """
    if event.callbacks is not None:
        event.callbacks.append(callback)


def call_after(env: Environment, delay_s: float, callback: Callable[[Event], None], value: object = None) -> Event:
    """Call a function after a delay, as one event of its own, which is returned.

    Parameters
    ----------
    env : Environment
    delay_s : float >= 0
    callback : called with the event
    value : what the event carries

    Returns
    -------
    event : of the call

    Raises
    ------
    ValueError
        If the delay is below 0.

    Examples
    --------
    >>> clock = Clock()
    >>> upload = call_after(clock, 0.25, lambda event: print("arrived at", clock.now))
    >>> clock.run()
    arrived at 0.25
    >>> call_after(clock, -1.0, print)
    Traceback (most recent call last):
    ValueError: a delay of -1.0 s is not allowed; it must be at least 0
    """
    if delay_s < 0:
        raise ValueError(f"a delay of {delay_s} s is not allowed; it must be at least 0")
    event = Event.__new__(Event)
    event.env, event.callbacks, event._value, event._ok = env, [callback], value, True
    # As SimPy's `Timeout` and `Environment.schedule`, in one call.
    heappush(env._queue, (env._now + delay_s, NORMAL, next(env._eid), event))
    return event


def call_next(env: Environment, callback: Callable[[Event], None]) -> None:
    """Call a function at this instant, after what happens now and before every other event of the instant.

    Parameters
    ----------
    env : clock of the run
    callback : gets the event of the call

    Examples
    --------
    >>> clock = Clock()
    >>> other = call_after(clock, 0.0, lambda event: print("second"))
    >>> call_next(clock, lambda event: print("first"))
    >>> clock.run()
    first
    second
    """
    event = Event(env)
    event._ok, event._value = True, None
    event.callbacks.append(callback)
    env.schedule(event, priority=URGENT)


def happen_after(event: Event, delay_s: float) -> None:
    """Have an event happen after a delay that begins now; until then it is not triggered, unlike SimPy's `Timeout`.

    Parameters
    ----------
    event : that nothing has triggered yet
    delay_s : float >= 0

    Examples
    --------
    >>> clock = Clock()
    >>> arrival = clock.event()
    >>> happen_after(arrival, 0.5)
    >>> clock.run(until=0.25)
    >>> arrival.triggered
    False
    >>> clock.run()
    >>> arrival.triggered, clock.now
    (True, 0.5)
    """
    event._ok = True
    event.callbacks.insert(0, _trigger)
    env = event.env
    heappush(env._queue, (env._now + delay_s, NORMAL, next(env._eid), event))


def _trigger(event: Event) -> None:
    event._value = None


def silence(event: Event) -> None:
    """Have an event that was to happen pass without being triggered, and without a call of what waits for it.

    Parameters
    ----------
    event : that nothing has triggered yet

    Examples
    --------
    >>> clock = Clock()
    >>> arrival = clock.event()
    >>> happen_after(arrival, 0.5)
    >>> call_when(arrival, lambda event: print("arrived at", clock.now))
    >>> silence(arrival)
    >>> clock.run()
    >>> arrival.triggered, clock.now
    (False, 0.5)
    """
    callbacks = event.callbacks
    # A process that waits for the event finds itself in the list until then, and may be interrupted.
    callbacks.insert(0, lambda _event: callbacks.clear())


def process_now(event: Event) -> None:
    """Trigger an event and call what waits for it as part of the present one, so that it costs no event of its own.

    Parameters
    ----------
    event : that nothing has triggered yet

    Examples
    --------
    >>> enough = Clock().event()
    >>> call_when(enough, lambda event: print("the round is over"))
    >>> process_now(enough)
    the round is over
    >>> enough.processed
    True
    """
    event._ok, event._value = True, None
    callbacks, event.callbacks = event.callbacks, None  # type: ignore[assignment]  # as SimPy does
    for callback in callbacks:
        callback(event)


def wait_until(env: Environment, time_s: float) -> Waiting:
    """Wait for an instant; one that is past has come.

    Parameters
    ----------
    env : clock of the run
    time_s : simulated second of the instant

    Examples
    --------
    >>> clock = Clock()
    >>> def server():
    ...     yield from wait_until(clock, 2.0)
    ...     yield from wait_until(clock, 1.0)  # is past, and costs no time
    ...     print(clock.now)
    >>> process = clock.process(server())
    >>> clock.run()
    2.0
    """
    yield env.timeout(max(0.0, time_s - env.now))


TIE_ULPS: Final = 4
_AFTER_ALL_OTHERS: Final = 2


class LastOfInstant(Event):
    """An event that comes after every ordinary event of the same instant.

    Parameters
    ----------
    env : Environment
    delay_s : float >= 0
    after_its_like : whether it also comes after every event of its own kind that does not say so

    Examples
    --------
    >>> clock = Clock()
    >>> deadline = LastOfInstant(clock, 1.0)
    >>> call_when(deadline, lambda event: print("deadline"))
    >>> upload = call_after(clock, 1.0, lambda event: print("delivered in time"))
    >>> clock.run()
    delivered in time
    deadline
    """

    def __init__(self, env: Environment, delay_s: float, *, after_its_like: bool = False) -> None:
        super().__init__(env)
        self._ok, self._value = True, None
        # SimPy types priorities as its own two levels but orders by any integer.
        env.schedule(self, priority=_AFTER_ALL_OTHERS + after_its_like, delay=delay_s)  # type: ignore[arg-type]


def first_of(env: Environment, enough: Event, limit: LastOfInstant) -> Waiting:
    """Wait until an event or a limit, whichever is first; events of the limit's instant still happen before the end.

    Parameters
    ----------
    env : clock of the run
    enough : event that ends the wait
    limit : event of the deadline, the last one of its instant

    Examples
    --------
    >>> clock = Clock()
    >>> def server():
    ...     yield from first_of(clock, clock.timeout(3.0), LastOfInstant(clock, 2.0))
    ...     print("over at", clock.now)
    >>> process = clock.process(server())
    >>> clock.run()
    over at 2.0
    """
    yield enough | limit
    while not enough.triggered and (tied_s := tie_s(env)):
        yield LastOfInstant(env, tied_s)


def rest_of_instant(env: Environment) -> Waiting:
    """Wait for all other events of the present instant.

    Parameters
    ----------
    env : clock of the run

    Examples
    --------
    >>> clock = Clock()
    >>> def server():
    ...     upload = call_after(clock, 0.0, lambda event: print("delivered"))
    ...     yield from rest_of_instant(clock)
    ...     print("counted at", clock.now)
    >>> process = clock.process(server())
    >>> clock.run()
    delivered
    counted at 0.0
    """
    yield LastOfInstant(env, 0.0)
    while tied_s := tie_s(env):
        yield LastOfInstant(env, tied_s)


def tie_s(env: Environment) -> float:
    """Return how long until the next event if that counts as the present instant, though it is later; 0 if not.

    Parameters
    ----------
    env : clock of the run

    Examples
    --------
    >>> clock = Clock(initial_time=0.6)
    >>> upload = call_after(clock, 1e-16, lambda event: None)
    >>> 0 < tie_s(clock) < 1e-15  # rounding only: it counts as the present instant
    True
    >>> later = Clock(initial_time=0.6)
    >>> upload = call_after(later, 1e-9, lambda event: None)
    >>> tie_s(later)
    0.0
    """
    next_s = env.peek() - env.now
    return float(next_s) if next_s <= TIE_ULPS * math.ulp(env.now) else 0.0


def delay_until(env: Environment, time_s: float) -> float:
    """Return the delay after which the clock shows an instant; 0 if it is past.

    The sum of clock and delay is rounded. Where no delay meets the instant, the last one that ends before it is given.

    Parameters
    ----------
    env : Environment
    time_s : instant

    Examples
    --------
    >>> clock = Clock(initial_time=0.1)
    >>> clock.now + (0.9 - clock.now) == 0.9, clock.now + delay_until(clock, 0.9) <= 0.9
    (True, True)
    >>> delay_until(clock, 0.05)
    0.0
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
    """Return the instant of each time, numbered from 0, shape (n,); times within `TIE_ULPS` are one instant.

    Parameters
    ----------
    times_s : in seconds, in any order, shape (n,)

    Examples
    --------
    >>> instants(np.array([0.1 + 0.2 + 0.3, 0.7, 0.3 + 0.2 + 0.1])).tolist()
    [0, 1, 0]
    """
    order = np.argsort(times_s, kind="stable")
    in_order_s = times_s[order]
    number = np.zeros(times_s.size, dtype=np.int64)
    number[order[1:]] = np.cumsum(np.diff(in_order_s) > TIE_ULPS * np.spacing(in_order_s[1:]))
    return number
