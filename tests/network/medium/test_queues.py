"""Shared media as queues with Poisson arrivals, against closed forms of queueing theory.

Tolerances are four standard errors from the means of batches, which are long against the time a queue remembers.
"""

import numpy as np
import pytest
import simpy

from fedsim.network.medium.disciplines import EqualSharing, FirstCome
from fedsim.network.medium.spectrum import SharedSpectrum

ARRIVALS, BATCHES = 20_000, 40
LOAD = 0.6

WORKS = {
    "exponential": lambda rng: rng.exponential(1.0, ARRIVALS),
    "constant": lambda _: np.ones(ARRIVALS),
    "hyperexponential": lambda rng: rng.exponential(np.where(rng.random(ARRIVALS) < 0.9, 0.5, 5.5)),
}
SECOND_MOMENTS = {"exponential": 2.0, "constant": 1.0, "hyperexponential": 0.9 * 2 * 0.5**2 + 0.1 * 2 * 5.5**2}


def drive(make, works, seed):
    """Let transfers come at random; return works, sojourns, waits and the medium."""
    rng = np.random.default_rng(seed)
    work = WORKS[works](rng)
    gap = rng.exponential(1 / LOAD, ARRIVALS)
    env = simpy.Environment()
    medium = SharedSpectrum(env, 1.0, make())
    sojourn, flows = np.zeros(ARRIVALS), []

    def arrivals():
        for i in range(ARRIVALS):
            yield env.timeout(gap[i])
            flow = medium.send(work[i], 1.0)
            flows.append(flow)
            flow.done.callbacks.append(lambda _, i=i, came=env.now: sojourn.__setitem__(i, env.now - came))

    env.process(arrivals())
    env.run()
    return work, sojourn, np.array([flow.queued_s() for flow in flows]), medium


def agrees(values, theory):
    means = values.reshape(BATCHES, -1).mean(axis=1)
    error = means.std(ddof=1) / np.sqrt(BATCHES)
    assert abs(means.mean() - theory) < 4 * error, (means.mean(), theory, error)


@pytest.mark.statistical
@pytest.mark.parametrize("works", WORKS)
def test_mean_sojourn_of_processor_sharing_does_not_depend_on_the_law_of_work(works):
    """M/G/1-PS: E[T] = E[S] / (1 - load); Kleinrock, "Queueing Systems", volume II, section 4.4."""
    _, sojourn, waits, medium = drive(EqualSharing, works, 1)
    agrees(sojourn, 1 / (1 - LOAD))
    assert not waits.any()
    assert medium.book().presence_s == pytest.approx(sojourn.sum())


@pytest.mark.statistical
def test_sojourn_of_processor_sharing_is_in_proportion_to_work():
    """M/G/1-PS: E[T | work x] = x / (1 - load), for short and for long works."""
    work, sojourn, _, _ = drive(EqualSharing, "exponential", 2)
    order = np.argsort(work)
    for part in np.array_split(order, 4):
        part.sort()
        agrees(sojourn[part] - work[part] / (1 - LOAD), 0.0)


@pytest.mark.statistical
@pytest.mark.parametrize("works", WORKS)
def test_mean_wait_of_first_come_is_pollaczek_and_khinchine_s(works):
    """M/G/1-FCFS: E[W] = rate E[S^2] / (2 (1 - load)); with constant works that of M/D/1."""
    work, sojourn, waits, _ = drive(FirstCome, works, 3)
    agrees(waits, LOAD * SECOND_MOMENTS[works] / (2 * (1 - LOAD)))
    np.testing.assert_allclose(sojourn, waits + work, atol=1e-7)


@pytest.mark.parametrize("make", [EqualSharing, FirstCome])
def test_littles_law_holds_on_the_sample_path(make):
    """Mean number present = rate of arrivals x mean sojourn, the number being integrated by the medium itself."""
    _, sojourn, _, medium = drive(make, "exponential", 4)
    span_s = medium.env.now
    book = medium.book()
    assert book.presence_s / span_s == pytest.approx(ARRIVALS / span_s * sojourn.mean(), rel=1e-9)
    assert book.carried == pytest.approx(book.received, rel=1e-9)
    assert book.received / book.most == pytest.approx(LOAD, rel=0.05)
