"""`check_executor` refuses broken executors, each for its own fault, and passes sound ones."""
# ruff: noqa: ARG005 (an executor takes what the contract gives)

from dataclasses import replace

import numpy as np
import pytest

from fedsim.errors import FedsimError
from fedsim.learning import Evaluation
from fedsim.learning.executors.sequential import SequentialExecutor
from fedsim.testing import check_executor
from tests.support.checks import passes, refuses
from tests.support.lies import lying, spoilt, stating

NEARLY = stating(
    spoilt(
        SequentialExecutor,
        "train",
        lambda results: [one._replace(difference=one.difference * np.float32(1 + 1e-5)) for one in results],
    ),
    fingerprint="nearly",
)
"""Sound under a fingerprint of its own: a little off, always alike."""


def training(answer):
    """Return a class of executors that change the results of trainings."""
    return spoilt(SequentialExecutor, "train", lambda results: answer(list(results)))


def given(change, member="train"):
    """Return a class of executors that change each job before the work."""
    sound = getattr(SequentialExecutor, member)
    return lying(SequentialExecutor, member, lambda self, jobs: sound(self, [change(job) for job in jobs]))


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


class GlobalDraws(SequentialExecutor):
    def train(self, jobs):
        np.random.rand()  # noqa: NPY002
        return super().train(jobs)


class WritesOnTheBase(SequentialExecutor):
    def train(self, jobs):
        for job in jobs:
            job.base[0] = 0
        return super().train(jobs)


test_sound_executors_pass = passes(check_executor, ["sequential", stating(SequentialExecutor, max_batch=1), NEARLY])
test_broken_executors_are_refused_for_their_fault = refuses(
    check_executor,
    [
        (
            stating(NEARLY, fingerprint="sequential"),
            "are not those of the sequential executor, whose fingerprint it has",
        ),
        (
            stating(
                training(lambda found: [one._replace(difference=one.difference * np.float32(1.1)) for one in found]),
                fingerprint="nearly",
            ),
            "are not those of the sequential executor",
        ),
        (stating(SequentialExecutor, fingerprint=""), "fingerprint: '' is not allowed"),
        (stating(SequentialExecutor, max_batch=0), "max_batch: 0 is not allowed"),
        (training(lambda found: found[::-1]), "depend on the order of the jobs|depend on the other jobs|are not those"),
        (Carries, "depend on"),
        (Batched, "depend on the (order of the|other) jobs"),
        (given(lambda job: job._replace(work=1.0)), "are not those of the sequential executor"),
        (given(lambda job: job._replace(rng=np.random.default_rng())), "differ when they are asked for again"),
        (GlobalDraws, "global random generator"),
        (training(lambda found: [one._replace(state={}) for one in found]), "are not those of the sequential executor"),
        (WritesOnTheBase, "read-only"),
        (
            given(lambda job: replace(job, rows=None), "evaluate"),
            "results of evaluate are not those of the sequential executor",
        ),
        (
            lying(SequentialExecutor, "evaluate", lambda self, jobs: [Evaluation(1.0, 0.0)]),
            "evaluate returned 1 results for 4 jobs",
        ),
        (
            training(lambda found: [one._replace(difference=one.difference.astype(np.float64)) for one in found]),
            "an array of float64",
        ),
    ],
)


def test_a_device_that_an_executor_does_not_have_is_refused():
    with pytest.raises(FedsimError, match="device: 'cuda' is not allowed"):
        check_executor("sequential", device="cuda")
