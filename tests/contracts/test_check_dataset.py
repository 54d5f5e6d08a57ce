"""`check_dataset` refuses broken data sets, each for its own fault, and passes fedsim's."""
# ruff: noqa: ARG005 (a column is made from the sound set)

from dataclasses import replace

import numpy as np

from fedsim import Component
from fedsim.capabilities import USERS
from fedsim.learning import DATASETS, Dataset
from fedsim.testing import check_dataset
from tests.support.checks import passes, refuses
from tests.support.lies import spoilt, stating
from tests.support.tiny_targets import TinyTargets


class Points(Component):
    """Points of a plane, labelled by their half; the broken sets differ from it in one thing each."""

    def load(self, data_dir=None):
        x = np.random.default_rng(0).normal(size=(60, 2)).astype(np.float32)
        y = (x[:, 0] > 0).astype(np.int64)
        return Dataset(x[:40], y[:40], x[40:], y[40:], classes=2)


def loading(change, **members):
    """Return a set with a change of what is loaded."""
    return stating(spoilt(Points, "load", change), **members)()


def used(data):
    return replace(data, train_users=np.repeat([0, 2], 20))


def of(**columns):
    return loading(lambda data: replace(data, **{name: change(data) for name, change in columns.items()}))


SETS = [Points(), TinyTargets(of="numbers"), TinyTargets(of="label-sets"), *map(DATASETS.make, ("digits", "synthetic"))]
test_sound_sets_pass = passes(check_dataset, SETS)
test_broken_sets_are_refused_for_their_fault = refuses(
    check_dataset,
    [
        (loading(vars), "Lie.load returned dict; a fedsim.learning.Dataset is needed"),
        (of(train_x=lambda data: data.train_x + np.float32(np.random.default_rng().random())), "content differs when"),
        (loading(lambda data: np.random.seed(0) or data), "Lie.load drew from a global random generator"),  # noqa: NPY002
        (of(classes=lambda data: 3), r"Lie.load: of 3 labels, no training sample has \[2\]"),
        (
            of(
                test_x=lambda data: np.concatenate([data.train_x[:2], data.test_x[2:]]),
                test_y=lambda data: np.concatenate([data.train_y[:2], data.test_y[2:]]),
            ),
            "Lie.load: 2 of 20 test samples are training samples too",
        ),
        (of(train_x=lambda data: data.train_x * np.float32(np.inf)), "train_x: numbers must be finite"),
        (loading(used, provides=frozenset({USERS})), "Lie.load: users must be numbered from 0 without gaps"),
        (loading(used), "Lie.provides does not name 'users', though the set has train_users"),
        (stating(Points, provides=frozenset({USERS}))(), "Lie.provides names 'users', but there is no train_users"),
        (type("Unlike", (), {"load": Points.load})(), "Unlike.load: it does not derive from fedsim.Component"),
    ],
)
