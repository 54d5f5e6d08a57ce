"""The order of the calls of one instant."""

from simpy import Environment

from fedsim.clock import call_after, call_next


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
