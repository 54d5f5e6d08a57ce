"""`check_executor` refuses broken executors, each for its own fault, and passes sound ones."""

from dataclasses import replace

import numpy as np
import pytest

from fedsim.errors import ContractError, FedsimError
from fedsim.learning import Evaluation
from fedsim.learning.executors.sequential import SequentialExecutor
from fedsim.testing import check_executor


class OneByOne(SequentialExecutor):
    """Sound: the same bits, one job in a batch."""

    max_batch = 1


class Nearly(SequentialExecutor):
    """Sound under a fingerprint of its own: a little off, always alike."""

    fingerprint = "nearly"

    def train(self, jobs):
        return [found._replace(difference=found.difference * np.float32(1 + 1e-5)) for found in super().train(jobs)]


class NearlyUnnamed(Nearly):
    fingerprint = "sequential"


class FarOff(Nearly):
    def train(self, jobs):
        return [found._replace(difference=found.difference * np.float32(1.1)) for found in super().train(jobs)]


class Nameless(SequentialExecutor):
    fingerprint = ""


class Batchless(SequentialExecutor):
    max_batch = 0


class Unordered(SequentialExecutor):
    def train(self, jobs):
        return list(super().train(jobs))[::-1]


class Carries(SequentialExecutor):
    """Starts each job where the one before ended."""

    def train(self, jobs):
        shift, results = np.float32(0), []
        for job in jobs:
            results += super().train([job._replace(base=job.base + shift)])
            shift = results[-1].difference
        return results


class Batched(SequentialExecutor):
    """Mixes the jobs of one batch."""

    def train(self, jobs):
        found = list(super().train(jobs))
        mean = sum(one.difference for one in found) / len(found) if found else 0
        return [one._replace(difference=(0.999 * one.difference + 0.001 * mean).astype(np.float32)) for one in found]


class Lazy(SequentialExecutor):
    """Does all of the work, whatever share is asked for."""

    def train(self, jobs):
        return super().train([job._replace(work=1.0) for job in jobs])


class OwnDraws(SequentialExecutor):
    """Draws the order of batches from a generator of its own."""

    def train(self, jobs):
        return super().train([job._replace(rng=np.random.default_rng()) for job in jobs])


class GlobalDraws(SequentialExecutor):
    def train(self, jobs):
        np.random.rand()  # noqa: NPY002
        return super().train(jobs)


class Forgets(SequentialExecutor):
    """Gives no optimiser states back."""

    def train(self, jobs):
        return [found._replace(state={}) for found in super().train(jobs)]


class WritesOnTheBase(SequentialExecutor):
    def train(self, jobs):
        for job in jobs:
            job.base[0] = 0
        return super().train(jobs)


class OnlyTheTestSet(SequentialExecutor):
    def evaluate(self, jobs):
        return super().evaluate([replace(job, rows=None) for job in jobs])


class AlwaysOne(SequentialExecutor):
    def evaluate(self, jobs):
        return [Evaluation(1.0, 0.0)]


class Double(SequentialExecutor):
    """Computes in float64."""

    def train(self, jobs):
        return [found._replace(difference=found.difference.astype(np.float64)) for found in super().train(jobs)]


@pytest.mark.parametrize("sound", ["sequential", OneByOne, Nearly])
def test_sound_executors_pass(sound):
    assert check_executor(sound) is None


@pytest.mark.parametrize(
    ("broken", "fault"),
    [
        (NearlyUnnamed, "are not those of the sequential executor, whose fingerprint it has"),
        (FarOff, "are not those of the sequential executor"),
        (Nameless, "fingerprint: '' is not allowed"),
        (Batchless, "max_batch: 0 is not allowed"),
        (Unordered, "depend on the order of the jobs|depend on the other jobs|are not those"),
        (Carries, "depend on"),
        (Batched, "depend on the (order of the|other) jobs"),
        (Lazy, "are not those of the sequential executor"),
        (OwnDraws, "differ when they are asked for again"),
        (GlobalDraws, "global random generator"),
        (Forgets, "are not those of the sequential executor"),
        (WritesOnTheBase, "read-only"),
        (OnlyTheTestSet, "results of evaluate are not those of the sequential executor"),
        (AlwaysOne, "evaluate returned 1 results for 4 jobs"),
        (Double, "an array of float64"),
    ],
)
def test_broken_executors_are_refused_for_their_fault(broken, fault):
    with pytest.raises(ContractError, match=fault):
        check_executor(broken)


def test_a_device_that_an_executor_does_not_have_is_refused():
    with pytest.raises(FedsimError, match="device: 'cuda' is not allowed"):
        check_executor("sequential", device="cuda")
