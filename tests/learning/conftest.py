"""Learners over a data set small enough to check by hand."""

import pytest
import torch

from fedsim.learning import Supervised, TrainingRun
from fedsim.learning.supervised import SupervisedLearner
from fedsim.streams import Streams
from tests.support.plain_learner import releasing
from tests.support.tiny_images import Tiny


@pytest.fixture
def tiny():
    return Tiny().load()


@pytest.fixture
def make_learner():
    def make(clients=6, seed=3, mechanism=None, store=None, **settings):
        table = {"data": Tiny(), "model": {"hidden": [5]}, **settings}
        learner = Supervised.model_validate(table).build(
            TrainingRun(clients, Streams(seed), parts=releasing(mechanism), store=store)
        )
        assert isinstance(learner, SupervisedLearner)
        return learner

    return make


@pytest.fixture
def one_thread():
    """Sums in the order of one thread, as a training has them."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
