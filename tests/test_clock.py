"""The order of the calls of one instant."""

import math

import pytest
from hypothesis import given, strategies as st
from simpy import Environment, Interrupt

from fedsim.clock import Clock, call_after, call_next, delay_until, happen_after, run_until, silence


def test_what_is_called_next_comes_before_all_other_events_of_the_instant():
    env, said = Environment(), []

    def now(_event):
        said.append("now")
        call_next(env, lambda _: said.append(f"next at {env.now}"))
        call_after(env, 0.0, lambda _: said.append("after"))
        said.append("still now")

    call_after(env, 2.0, now)
    call_after(env, 2.0, lambda _: said.append("other"))
    env.run()
    assert said == ["now", "still now", "next at 2.0", "other", "after"]


def test_a_clock_runs_until_an_event_or_an_error_that_nobody_takes():
    env, said = Clock(), []

    def fails(after_s):
        yield env.timeout(after_s)
        raise ValueError("out of range")

    env.process(fails(3.0))
    call_after(env, 1.0, lambda _: said.append(env.now))
    run_until(env, call_after(env, 2.0, lambda _: said.append(env.now)))
    assert said == [1.0, 2.0]
    with pytest.raises(ValueError, match="out of range"):
        run_until(env, env.timeout(9.0))
    assert env.now == 3.0
    with pytest.raises(ValueError, match="out of range"):
        run_until(env, env.process(fails(1.0)))


def test_an_event_that_happens_after_a_delay_is_triggered_then_and_not_before():
    env, said = Environment(), []
    event = env.event()
    event.callbacks.append(lambda found: said.append((env.now, found, found.triggered, found.ok, found.value)))
    happen_after(event, 2.0)
    call_after(env, 2.0, lambda _: said.append("asked for later"))
    env.run(until=1.0)
    assert not event.triggered
    env.run()
    assert said == [(2.0, event, True, True, None), "asked for later"]


def test_a_silenced_event_passes_and_a_process_that_waits_for_it_can_be_interrupted():
    env, said = Environment(), []
    event = env.event()

    def process(name):
        try:
            yield event
            said.append(f"{name} was told")
        except Interrupt:
            said.append(f"{name} was interrupted at {env.now}")

    waiting = [env.process(process(name)) for name in "ab"]
    happen_after(event, 2.0)
    call_after(env, 1.0, lambda _: silence(event))
    call_after(env, 1.5, lambda _: waiting[0].interrupt())
    env.run()
    assert said == ["a was interrupted at 1.5"]
    assert not event.triggered


@given(st.floats(0.0, 1e12), st.floats(0.0, 1e12))
def test_a_delay_until_an_instant_ends_at_that_very_instant(now_s, time_s):
    """SimPy adds the delay to the clock; the difference of two instants, added to the first, may miss the second.

    Far from 0 there may be no delay that meets it; then the next longer one ends after it.
    """
    env = Environment(now_s)
    delay_s = delay_until(env, time_s)
    assert delay_s >= 0
    ends_s = now_s + delay_s
    assert ends_s == max(now_s, time_s) or ends_s < time_s < now_s + math.nextafter(delay_s, math.inf)
