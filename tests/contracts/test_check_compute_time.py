"""The check of compute times: every built-in law passes, and each of these broken ones is refused."""
# ruff: noqa: ARG005 (times take what the contract gives)

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

from fedsim import Component
from fedsim.arrays import normal_quantile
from fedsim.devices import COMPUTE_TIMES
from fedsim.errors import ContractError
from fedsim.streams import Streams
from fedsim.testing import check_compute_time
from tests.golden import scenarios as golden
from tests.support.checks import refuses
from tests.support.families import by_default
from tests.support.lies import lying, stating


@pytest.mark.parametrize("name", by_default(golden.COMPUTES, ["zero", "rate", "flops", "fedscale", "fedscale-csv"]))
def test_built_in_laws_pass(name, frozen_inputs, monkeypatch):
    monkeypatch.chdir(frozen_inputs)
    check_compute_time(COMPUTE_TIMES.make(golden.COMPUTES[name]))
    check_compute_time(COMPUTE_TIMES.make(golden.COMPUTES[name]), clients=2, draws=0, seed=7)


@dataclass
class Times:
    """A sound law of 0.1 s a sample and a log-normal jitter."""

    clients: int
    streams: Streams

    def duration_s(self, client, draw, samples):
        return 0.1 * samples * np.exp(0.2 * normal_quantile(self.streams.uniform("jitter", client, draw)) - 0.02)

    def expected_s(self, samples):
        return 0.1 * samples


def lasting(answer):
    """Return a class of times that a function of the sound ones and of the clients answers."""
    return lying(Times, "duration_s", lambda self, client, *of: answer(Times.duration_s(self, client, *of), client))


class Law(Component):
    requires: ClassVar[frozenset[str]] = frozenset({"samples"})
    times: ClassVar[type] = Times

    def build(self, run):
        return self.times(run.clients, run.streams)


class Everyone(Times):
    def duration_s(self, client, draw, samples):
        return super().duration_s(np.arange(self.clients), draw, np.full(self.clients, 10.0))


class Shorter(Times):
    def duration_s(self, client, draw, samples):
        return super().duration_s(client, draw, 1.0 / np.maximum(samples, 1.0))

    def expected_s(self, samples):
        return super().expected_s(1.0 / np.maximum(samples, 1.0))


def remembering(self, client, draw, samples):
    self.asked = getattr(self, "asked", 0) + 1
    return Times.duration_s(self, client, self.asked, samples)


class OwnGenerator(Times):
    def __init__(self, clients, streams):
        super().__init__(clients, streams)
        self.speed = np.random.default_rng().uniform(1.0, 2.0, clients)

    def duration_s(self, client, draw, samples):
        return self.speed[client] * super().duration_s(client, draw, samples)

    def expected_s(self, samples):
        return self.speed * super().expected_s(samples)


def in_place(self, client, draw, samples):
    samples *= 0.1
    return samples


class MedianForMean(Times):
    def expected_s(self, samples):
        return super().expected_s(samples) * np.exp(-0.5)

    def duration_s(self, client, draw, samples):
        return 0.1 * samples * np.exp(normal_quantile(self.streams.uniform("jitter", client, draw)) - 0.5)


class AnotherClientsMean(Times):
    def duration_s(self, client, draw, samples):
        return (1 + client % 3) * super().duration_s(client, draw, samples)

    def expected_s(self, samples):
        return (1 + np.arange(1, samples.size + 1) % 3) * super().expected_s(samples)


class ShareOfTheCrowd(Times):
    def duration_s(self, client, draw, samples):
        return super().duration_s(client, draw, samples) * self.clients

    def expected_s(self, samples):
        return super().expected_s(samples) * self.clients


class Silent:
    def __init__(self, clients, streams):
        pass

    def duration_s(self, client, draw, samples):
        return 0.1 * samples


def fails(clients, streams):
    raise KeyError("speed")


def check(broken):
    check_compute_time(stating(Law, times=staticmethod(broken))())


test_broken_laws_are_refused = refuses(
    check,
    [
        (
            lasting(lambda seconds, client: seconds.tolist()),
            r"Lie\.duration_s returned list; float64 of shape \(40,\) is needed",
        ),
        (Everyone, r"float64 of shape \(20,\) is needed \(draw 2, 40 clients\)"),
        (
            lasting(lambda seconds, client: seconds - 1.0),
            r"finite numbers of at least 0 are needed \(draw 1, 40 clients\)",
        ),
        (lasting(lambda seconds, client: np.where(client == 3, np.inf, seconds)), "finite numbers of at least 0"),
        (Shorter, "a shorter duration for more samples"),
        (lying(Times, "duration_s", remembering), "differ when they are asked for again"),
        (OwnGenerator, "differ between two builds with one seed"),
        (
            lying(Times, "duration_s", in_place),
            "duration_s failed with ValueError: .*the arrays given must not be changed",
        ),
        (
            lying(Times, "duration_s", lambda self, client, *of: Times.duration_s(self, np.arange(client.size), *of)),
            "depend on the other clients asked for, or on their order",
        ),
        (MedianForMean, r"expected_s is not the mean of duration_s: the clients' mean .* over 300 draws"),
        (AnotherClientsMean, r"client 0's mean duration in s is .* with a standard error of"),
        (ShareOfTheCrowd, "differ in a crowd of twice the size"),
        (
            lying(Times, "duration_s", lambda self, client, draw, samples: np.ones(1000)[draw] * samples),
            r"failed with IndexError.*draw 3298534883333",
        ),
        (lasting(lambda seconds, client: seconds + 0.0 * client.max()), "failed with ValueError"),
        (Silent, "it has no method expected_s"),
        (fails, r"Lie\.build failed with KeyError: 'speed'"),
    ],
)


def test_a_law_that_depends_on_samples_must_require_them():
    with pytest.raises(ContractError, match="depend on the samples, though requires does not name them"):
        check_compute_time(stating(Law, requires=frozenset())())


def test_a_law_may_depend_on_the_size_of_the_crowd_if_it_says_so():
    check_compute_time(stating(Law, times=ShareOfTheCrowd)(), paired=False)
