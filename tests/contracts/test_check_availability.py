"""The check of availability: every built-in law passes, and each of these broken ones is refused."""
# ruff: noqa: ARG005 (a law takes what the contract gives)

import math
from typing import ClassVar

import numpy as np
import pytest

from fedsim import Component
from fedsim.devices import AVAILABILITIES, Availability, Bernoulli, EligibleClients
from fedsim.devices.availability.on_off import Markov, OnOffProcess
from fedsim.rounds.effects.battery import Battery
from fedsim.rounds.effects.leaving import Crashes
from fedsim.run_setup import RunSetup
from fedsim.testing import check_availability
from tests.golden import scenarios as golden
from tests.support.checks import refuses
from tests.support.families import by_default
from tests.support.lies import lying, spoilt, stating
from tests.support.worlds import batteries

# One law of each kind by default; a chain is in the next test.
FIRST = ["always", "bernoulli", "diurnal", "flash", "traces-csv"]


@pytest.mark.parametrize("name", by_default(golden.AVAILABILITIES, FIRST))
def test_built_in_laws_pass(name, frozen_inputs, monkeypatch):
    monkeypatch.chdir(frozen_inputs)
    check_availability(AVAILABILITIES.make(golden.AVAILABILITIES[name]))
    check_availability(AVAILABILITIES.make(golden.AVAILABILITIES[name]), clients=3, seed=5)


@pytest.mark.parametrize(
    "online", [Bernoulli(probability=0.1), Bernoulli(probability=1.0), Markov(mean_on_s=200.0, mean_off_s=900.0)]
)
def test_clients_that_must_meet_criteria_pass(online):
    """One client of each crowd has a charged battery at once, the others later; devices run two thirds of the time."""

    class Eligible(Component):
        may_leave: ClassVar[bool] = online.may_leave

        def build(self, run):
            power = batteries([60.0] + [20.0] * (run.clients - 1), gain_w=0.1, least=50.0)
            running = Markov(mean_on_s=800.0, mean_off_s=400.0).build(
                RunSetup(run.clients, run.streams.within("devices"))
            )
            return EligibleClients(online.build(run), [Battery(power), Crashes(running)], np.arange(run.clients))

    check_availability(Eligible())


class Sound(Availability):
    """Sound clients that are available in 30 % of the draws."""

    kind = "per-draw"
    retry_s = 2.0

    def __init__(self, client, streams):
        self.client, self.streams = client, streams

    def available(self, client, time_s, draw):
        return self.streams.uniform("sound", client, draw) < 0.3

    def next_s(self, time_s, draw, client=None):
        if client is not None:
            return (time_s if self.available(client, time_s, draw).any() else math.inf), draw
        while not self.available(self.client, time_s, draw).any():
            time_s, draw = time_s + self.retry_s, self.redraw(draw)
        return time_s, draw

    def part(self, client):
        return type(self)(client, self.streams)


class Law(Component):
    may_leave: ClassVar[bool] = False
    built: ClassVar[type] = Sound

    def build(self, run):
        return self.built(np.arange(run.clients), run.streams)


class HiddenDraw(Sound):
    """Repeats the draw of a round and remembers it: after `next_s`, `available` says something else."""

    repeated = 0

    def available(self, client, time_s, draw):
        return super().available(client, time_s, draw + self.repeated)

    def next_s(self, time_s, draw, client=None):
        self.repeated = 0
        while not super().available(np.array([0]), time_s, draw + self.repeated).any():
            time_s, self.repeated = time_s + self.retry_s, self.redraw(self.repeated)
        return time_s, draw


class CountsQuestions(Sound):
    asked = 0

    def available(self, client, time_s, draw):
        self.asked += 1
        return super().available(client, time_s, draw + self.asked)


class OwnGenerator(Sound):
    def __init__(self, client, streams):
        super().__init__(client, streams)
        self.lucky = np.random.default_rng().random(1000) < 0.3

    def available(self, client, time_s, draw):
        return super().available(client, time_s, draw) | self.lucky[client]


class Backwards(Sound):
    def next_s(self, time_s, draw, client=None):
        at_s, draw = super().next_s(time_s, draw, client)
        return at_s - 1.0, draw


class NewDrawInTime(OnOffProcess):
    def __init__(self, client, streams):
        super().__init__(client.size)

    def look_up(self, client, time_s):
        return np.ones(client.size, dtype=bool), np.full(client.size, np.inf)

    def next_s(self, time_s, draw, client=None):
        return time_s, draw + 1


def check(broken):
    check_availability(stating(Law, built=broken)())


test_broken_laws_are_refused = refuses(
    check,
    [
        (HiddenDraw, r"next_s: asked again at .* it returns another instant or draw"),
        (CountsQuestions, "available: the answer is changed by other questions"),
        (OwnGenerator, "the answer is not the same in a second build"),
        (spoilt(Sound, "available", lambda there: there.astype(float)), "bool of shape .* is needed"),
        (
            lying(Sound, "available", lambda self, client, *of: Sound.available(self, self.client, *of)),
            r"bool of shape \(1,\)",
        ),
        (
            lying(Sound, "available", lambda self, client, *of: Sound.available(self, np.arange(client.size), *of)),
            "the answer for some clients is not that for all|no client is available",
        ),
        (
            lying(Sound, "next_s", lambda self, *of: (Sound.next_s(self, *of)[0], of[1])),
            r"no client is available at .* in draw",
        ),
        (Backwards, r"next_s: -1\.0 is earlier \(at 0\.0 s, draw 1, 40 clients\)"),
        (
            lying(Sound, "leaves_after_s", lambda self, client, *of: np.full(client.size, 3.0)),
            "a client leaves, though may_leave is False",
        ),
        (lying(Sound, "leaves_after_s", lambda self, client, *of: np.full(client.size, -1.0)), "numbers of at least 0"),
        (lying(Sound, "part", lambda self, client: self), "no client is available"),
        (stating(Sound, kind="random"), "kind = 'random' is not allowed"),
        (stating(Sound, retry_s=math.inf), "retry_s = inf is not allowed"),
        (
            lying(Sound, "earliest_s", lambda self, client, time_s, draw: np.full(client.size, time_s)),
            "earliest_s: it must be the instant for available clients",
        ),
        (lambda *_: object(), r"Lie\.build returned <object"),
        (NewDrawInTime, "the draw has become 2, though nothing is drawn anew"),
    ],
)
