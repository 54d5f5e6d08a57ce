"""An embedding that has no row for a token of the data is refused before a run, under every executor."""

import numpy as np
import pytest
from torch import nn

from fedsim import Component, simulate
from fedsim.errors import PartError
from fedsim.learning import Dataset
from tests.support.short_runs import of_learning


class Words(nn.Module):
    """A vector for each of some tokens, and a second one for those of the last place."""

    def __init__(self, tokens=5, last=5):
        super().__init__()
        self.words, self.ends, self.out = nn.Embedding(tokens, 4), nn.Embedding(last, 4), nn.Linear(4, 2)

    def forward(self, samples):
        flat = samples.flatten(1)
        return self.out(self.words(flat[:, :-1]).mean(1) + self.ends(flat[:, -1]))


class Texts(Component):
    """Texts of three tokens, 0 to 4 but for one sample of one client."""

    odd: tuple[int, ...] = (3, 9, 2)
    of_test: bool = False
    axes: tuple[int, ...] = (3,)

    def load(self, data_dir=None):
        rng = np.random.default_rng(0)
        parts = [rng.integers(0, 5, (count, 3)) for count in (80, 20)]
        parts[self.of_test][-1] = self.odd
        train, test = (part.reshape(-1, *self.axes) for part in parts)
        words = 10 if self.axes == (3,) and min(self.odd) >= 0 else None
        targets = [rng.integers(0, 2, count) for count in (80, 20)]
        return Dataset(train, targets[0], test, targets[1], classes=2, vocabulary=words)


def run(executor, data, model, store=False):
    return simulate(of_learning({"data": data, "model": model}, cohort=4), store=store, executor=executor)


@pytest.mark.parametrize("executor", ["sequential", "stacked"])
@pytest.mark.parametrize(
    ("data", "model"),
    [
        (Texts(), Words()),
        (Texts(of_test=True), Words()),
        (Texts(odd=(9, 1, 5)), Words(tokens=10)),
        (Texts(odd=(1, -1, 2)), Words()),
        (Texts(axes=(3, 1)), Words()),
    ],
    ids=["training", "test", "one place", "below 0", "no rows"],
)
def test_a_token_without_a_vector_is_refused(executor, data, model):
    with pytest.raises(PartError, match=r"Words.forward failed with IndexError"):
        run(executor, data, model)


def test_it_is_refused_too_where_other_data_of_that_shape_were_not(tmp_path):
    run("stacked", Texts(odd=(3, 4, 2)), Words(), tmp_path)
    with pytest.raises(PartError, match="IndexError"):
        run("stacked", Texts(), Words(), tmp_path)
    assert run("stacked", Texts(), Words(10, 10), tmp_path).rounds.num_rows == 1
