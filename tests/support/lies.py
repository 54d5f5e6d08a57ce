"""Parts that lie: for each contract an honest part, and a class of it that returns what a test says."""
# ruff: noqa: ARG005 (lies take what their contract gives)

import inspect
import re
from typing import ClassVar

import numpy as np
import pytest
from pydantic import ValidationError
from simpy import Interrupt
from simpy.core import EmptySchedule, StopSimulation

from fedsim import Component, Scenario, simulate
from fedsim.devices import Availability, Never
from fedsim.errors import PartError, ScenarioError
from fedsim.history.outcomes import RoundEnd
from fedsim.learning import LocalAlgorithm, Start
from fedsim.learning.aggregation.contracts import Aggregator
from fedsim.network.contracts import Directions
from fedsim.network.medium.disciplines import EqualSharing
from fedsim.network.transfers import SharedMedium, Transfer
from fedsim.rounds.hierarchy.backhaul import Backhaul
from fedsim.rounds.policies.contracts import RoundPolicy
from fedsim.rounds.policies.late import LateRule
from fedsim.rounds.policies.server_port import ServerTraits
from fedsim.selectors import Cohort
from tests.golden.scenarios import together
from tests.support.worlds import FixedLinks

CLIENTS, ROUNDS = 4, 3


def lying(honest, member, answer):
    """Return a subclass of an honest part's class whose member returns ``answer(self, *arguments)``."""

    def method(self, *arguments, **named):
        return answer(self, *arguments, **named)

    value = property(method) if isinstance(inspect.getattr_static(honest, member, None), property) else method
    return type("Lie", (honest,), {member: value, "__module__": __name__})


def spoilt(honest, member, change):
    """Return a subclass of an honest part's class whose member returns a change of what the honest one returns."""
    return lying(honest, member, lambda self, *given, **named: change(getattr(honest, member)(self, *given, **named)))


def stating(honest, **members):
    """Return a subclass of an honest part's class with other members."""
    return type(
        "Lie",
        (honest,),
        {**members, "__annotations__": dict.fromkeys(members, ClassVar[object]), "__module__": __name__},
    )


class HonestSelector:
    def select(self, view, rng):
        return Cohort(view.client[:2])

    def observe(self, reports):
        return


class HonestLinks(FixedLinks):
    """Every transfer takes a second."""

    def __init__(self, clients):
        super().__init__(np.ones(clients), np.ones(clients))


class HonestTransfer(Transfer):
    __slots__ = ("done",)

    def __init__(self, env):
        self.done = env.timeout(1.0)

    def cancel(self):
        return

    def sent_bits(self):
        return 1.0


class HonestMedium(SharedMedium):
    transfer = HonestTransfer

    def __init__(self, env):
        self.env = env

    def downlink(self, client, bits):
        return self.transfer(self.env)

    def uplink(self, client, bits):
        return self.transfer(self.env)


class SharedLinks(HonestLinks):
    shared = Directions(down=True, up=True)
    medium = HonestMedium

    def open(self, env):
        return self.medium(env)


def building(built, **more):
    """Return settings, of a user's own, that build what a call with the run returns."""

    class Settings(Component):
        def build(self, run):
            return built(run)

    stated = {"__module__": __name__, "__annotations__": dict.fromkeys(more, ClassVar[object]), **more}
    return type("Settings", (Settings,), stated)()


def network_of(links):
    return {"network": building(lambda run: links(run.clients), requires=frozenset())}


def cell(**parts):
    return {
        "learning": {"kind": "none", "model_bits": 1e4, "samples_per_client": 5},
        "network": {"kind": "cell", **parts},
    }


class HonestWithDropout(Never):
    possible = True

    def time_to_dropout_s(self, client, draw, streams, phases_s=None):
        return np.full(client.size, np.inf)


class ViewOf:
    def __init__(self, view):
        self.view = view

    @property
    def signal_db(self):
        return self.view.signal_db

    def in_reach(self):
        return self.view.in_reach()

    def rates_bps(self, station):
        return self.view.rates_bps(station)


class CoverageOf:
    """A coverage whose views are shown by a function of the honest ones."""

    def __init__(self, coverage, shown):
        self.coverage, self.step_m, self.shown = coverage, coverage.step_m, shown

    def view(self, client, places_m):
        return self.shown(self.coverage.view(client, places_m))


class HonestAvailability(Availability):
    kind = "timed"

    def available(self, client, time_s, draw):
        return np.ones(client.size, dtype=bool)

    def next_s(self, time_s, draw, client=None):
        return time_s, draw

    def part(self, client):
        return self


class NeverThere(HonestAvailability):
    """Clients that are not there when they are looked for."""

    def available(self, client, time_s, draw):
        return np.zeros(client.size, dtype=bool)


class OwnWait(RoundPolicy):
    @property
    def traits(self):
        return ServerTraits()

    def wait(self, server, round_):
        yield round_.everyone
        return RoundEnd.ENOUGH


def late_rule(rule):
    """Return a late rule, of a user's own, with an aggregation rule."""

    class Own(LateRule):
        cancels = True

        def aggregation(self, learner):
            return rule(learner)

    return {"rounds": {"late": type("Own", (Own,), {"__module__": __name__})()}}


class HonestSharing(EqualSharing):
    """Equal shares; the option keeps the object from being named by its class."""

    def __init__(self, option=1.0):
        super().__init__()
        self.option = option


class HonestAlgorithm(LocalAlgorithm):
    """Trains plainly; clients keep what their last training added."""

    remembers: ClassVar[bool] = True

    def begin(self, task):
        return Start(task.model)

    def end(self, task, difference):
        return {"last": difference}

    @property
    def pull(self):
        return 0.0


class HonestAggregation(Aggregator):
    def combine(self, updates, weights, parameters):
        return np.asarray(weights @ updates)


class HonestBackhaul(Backhaul):
    def open(self, env, links, medium, bits):
        return lambda edge, up: HonestTransfer(env)


def edges(**parts):
    own = {"grouping": {"kind": "order", "count": 2}, "backhaul": {"kind": "none"}, **parts}
    return {"rounds": {"edges": own}}


def learning(**parts):
    return {
        "learning": {
            "kind": "supervised",
            "data": {"kind": "digits", "train_limit": 40},
            "model": {"kind": "mlp", "hidden": []},
            **parts,
        }
    }


BASE = {
    "name": "lies",
    "seed": 1,
    "crowd": {"clients": CLIENTS},
    "learning": {"kind": "none", "samples_per_client": 5},
    "network": {"kind": "pause-two-speed"},
    "rounds": {"count": ROUNDS, "policy": "wait-for-all"},
    "selector": {"kind": "uniform", "cohort": 2},
}


def run(tables, **options):
    return simulate(Scenario(**together(BASE, tables)), store=False, **options)


HUGE = 2**62


def returning(value):
    return lambda self, *arguments, **named: value


def raising(error):
    def fail(self, *arguments, **named):
        raise error

    return fail


def like(name_or_place, change):
    """Return an answer that has the shape of an argument, changed by a function of an array of ones."""
    return lambda self, *arguments, **named: change(np.ones(np.shape(arguments[name_or_place])))


def first(value):
    def change(array):
        array.flat[0] = value
        return array

    return change


RAISED = {
    "Interrupt": Interrupt("a crash"),
    "StopSimulation": StopSimulation(None),
    "EmptySchedule": EmptySchedule(),
    "StopIteration": StopIteration(),
    "GeneratorExit": GeneratorExit(),
    "SystemExit": SystemExit(3),
    "KeyError": KeyError("loss"),
    "MemoryError": MemoryError(),
}


def raised(contract, tables):
    """Return a part that raises what the clock takes for something else."""
    return f"{contract} raises Interrupt", tables(raising(RAISED["Interrupt"])), "failed with Interrupt"


def refused(tables, said):
    """Check that a run is refused in five lines: part, what is allowed or where, client, round, second."""
    with pytest.raises((PartError, ScenarioError, ValidationError), match=said) as caught:
        run(tables() if callable(tables) else tables)
    if not issubclass(caught.type, PartError):
        return  # refused with the scenario, before any round
    text = str(caught.value).splitlines()
    assert len(text) == 5
    assert re.match(r"  (allowed|where): .", text[1])
    assert [line.split(":")[0].strip() for line in text[2:]] == ["client", "round", "simulated second"]
