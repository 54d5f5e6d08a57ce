"""Learners over a data set small enough to check by hand."""

from collections.abc import Callable
from typing import Any

import pytest
from tiny_images import Tiny

from fedsim.learning import Dataset, Supervised
from fedsim.learning.supervised import SupervisedLearner
from fedsim.streams import Streams


@pytest.fixture
def tiny() -> Dataset:
    return Tiny().load()


@pytest.fixture
def make_learner() -> Callable[..., SupervisedLearner]:
    def make(
        clients: int = 6, seed: int = 3, mechanism: Any = None, store: Any = None, **settings: Any
    ) -> SupervisedLearner:
        table = {"data": Tiny(), "model": {"hidden": [5]}, **settings}
        learner = Supervised.model_validate(table).build(clients, Streams(seed), mechanism, store)
        assert isinstance(learner, SupervisedLearner)
        return learner

    return make
