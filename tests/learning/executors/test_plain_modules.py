"""Modules of users against a plain loop of torch with a fresh module for each client: equal, or refused by name."""

import random
import warnings
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.utils import parametrizations

from fedsim import simulate
from fedsim.errors import FedsimError
from fedsim.learning import (
    Dataset,
    EvaluationJob,
    ExecutorChoice,
    LocalTraining,
    MemoryStore,
    Supervised,
    TrainingJob,
    TrainingSetup,
)
from fedsim.learning.models.flat_module import build_flat
from tests.support import plain_loop
from tests.support.short_runs import of_learning

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(120, 6)).astype(np.float32), RNG.integers(0, 3, 120)
DATA = Dataset(X, Y, X[:40], Y[:40], classes=3)
LOCAL = LocalTraining(learning_rate=0.1, epochs=2, batch_size=8)
CLIENTS = (3, 0, 2, 3)
COUNT = [0]


class Plain(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(5)
        self.first, self.last, self.act, self.calls = nn.Linear(6, 6), nn.Linear(6, 3), nn.Tanh(), 0
        self.more()

    def more(self):
        pass

    def forward(self, x):
        return self.last(self.act(self.first(x)))


class SharedStatistics(Plain):
    def more(self):
        self.one, self.other = nn.BatchNorm1d(6), nn.BatchNorm1d(6)
        self.other.running_mean, self.other.running_var = self.one.running_mean, self.one.running_var

    def forward(self, x):
        return self.last(self.other(self.act(self.one(self.first(x)))))


class ShortRows(Plain):
    """Bounds the norm of each row by putting another array in the place of the numbers."""

    def forward(self, x):
        self.last.weight.data = torch.renorm(self.last.weight.data, 2, 0, 0.3)
        return super().forward(x)


class Clears(Plain):
    def forward(self, x):
        self.zero_grad()
        return super().forward(x)


class Described(Plain):
    """Has something beside arrays in its state."""

    def get_extra_state(self):
        return {"calls": self.calls}

    def set_extra_state(self, state):
        self.calls = state["calls"]


class Counts(Plain):
    """Computes something else after the two batches of a standard job."""

    def forward(self, x):
        self.calls += 1
        return super().forward(x) * (2.0 if self.calls > 3 else 1.0)


class Normed(Plain):
    def more(self):
        self.first, self.last = parametrizations.weight_norm(self.first), parametrizations.spectral_norm(self.last)


class Recurrent(Plain):
    """Goes on from the state that the last batch left."""

    def more(self):
        self.inner, self.kept = nn.LSTM(2, 6, batch_first=True), None

    def forward(self, x):
        kept = None if self.kept is None or self.kept[0].shape[1] != len(x) else self.kept
        found, (one, other) = self.inner(x.view(-1, 3, 2), kept)
        self.kept = one.detach(), other.detach()
        return self.last(found[:, -1])


class Spare(Plain):
    """Has a layer that no sample passes."""

    def more(self):
        self.spare = nn.Linear(6, 6)


class Skips(Plain):
    """Leaves a layer out in each second batch."""

    def more(self):
        self.skipped = nn.Linear(6, 6)

    def forward(self, x):
        self.calls += 1
        return super().forward(self.skipped(x) if self.calls % 2 else x)


class Guesses(Plain):
    """Leaves a layer out now and then, by Python's generator."""

    def forward(self, x):
        return self.last(x if self.training and random.random() < 0.01 else self.act(self.first(x)))  # noqa: S311


class OneMemory(Plain):
    def more(self):
        self.second = nn.Linear(6, 6)
        self.second.weight.data = self.first.weight.data.t()


class Seen(Plain):
    def more(self):
        self.register_buffer("shown", self.first.weight.data)


class Complex(Plain):
    def more(self):
        self.filter = nn.Parameter(torch.ones(4, dtype=torch.cfloat))

    def forward(self, x):
        return super().forward(torch.fft.irfft(torch.fft.rfft(x) * self.filter, n=6))


class Short(Plain):
    def more(self):
        self.scale = nn.Parameter(torch.ones(3, dtype=torch.float16))

    def forward(self, x):
        return super().forward(x) * self.scale.float()


class Scripted(Plain):
    def more(self):
        with warnings.catch_warnings(action="ignore"):  # torch calls scripts old
            self.act = torch.jit.script(nn.Tanh())


class Freezes(Plain):
    def forward(self, x):
        self.calls += 1
        if self.calls == 4:
            self.first.weight.requires_grad_(False)
        return super().forward(x)


class Swaps(Plain):
    def forward(self, x):
        self.calls += 1
        if self.calls == 4:
            self.act = nn.ReLU()
        return super().forward(x)


class Late(Plain):
    """Computes something else after 100 batches of whatever client."""

    def forward(self, x):
        COUNT[0] += 1
        return super().forward(x) * (2.0 if COUNT[0] > 100 else 1.0)


class Growing(nn.Module):
    """Its first pass makes a layer, or a buffer that its state has or has not."""

    def __init__(self, makes):
        super().__init__()
        self.makes, self.scores = makes, nn.Linear(6, 3)
        self.register_buffer("mean", None)

    def forward(self, x):
        if self.makes == "layer" and not hasattr(self, "grown"):
            self.grown = nn.Linear(6, 6)
        if self.makes != "layer" and self.training and self.mean is None:
            self.register_buffer("mean", x.detach().mean(0), persistent=self.makes == "buffer")
        return self.scores(self.grown(x) if self.makes == "layer" else x if self.mean is None else x - self.mean)


def setup_of(model):
    return TrainingSetup(Supervised.model_validate({"data": (X, Y, X, Y), "model": model}).model, DATA, LOCAL, 5)


def layout_of(setup):
    return build_flat(setup.model, DATA.shape, 3, 5).layout


def jobs_of(layout):
    rows = [np.arange(21 * client, 21 * client + 21) for client in CLIENTS]
    rngs = [np.random.default_rng(client) for client in CLIENTS]
    return [TrainingJob(layout.initial, of, 1.0, rng) for of, rng in zip(rows, rngs, strict=True)]


def trained(kind, model, **local):
    """Return what clients learn of the trained numbers; evaluations before and after are the same."""
    setup = replace(setup_of(model), local=LOCAL.model_copy(update=local))
    executor, layout = ExecutorChoice(kind).build(setup), layout_of(setup)
    before = executor.evaluate([EvaluationJob(layout.initial)])
    found = [one.difference[: layout.parameters] for one in executor.train(jobs_of(layout))]
    assert executor.evaluate([EvaluationJob(layout.initial)]) == before
    return found


def by_hand(model, **local):
    setup = replace(setup_of(model), local=LOCAL.model_copy(update=local))
    layout = layout_of(setup)
    with torch.random.fork_rng():
        return [plain_loop.trained(setup, job)[0][: layout.parameters] for job in jobs_of(layout)]


@pytest.mark.parametrize("kind", ["sequential", "stacked", pytest.param("processes", marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "model", [SharedStatistics, ShortRows, Clears, Counts, Described, Normed, Recurrent, Growing("cache")]
)
@pytest.mark.usefixtures("one_thread")
def test_a_client_learns_what_a_plain_loop_does(model, kind, monkeypatch):
    monkeypatch.setenv("FEDSIM_WORKERS", "2")
    try:
        found = trained(kind, model)
    except FedsimError:
        assert kind == "stacked"
        assert model not in (SharedStatistics, Clears, Described)
        return
    np.testing.assert_allclose(found, by_hand(model), rtol=1e-4, atol=0 if kind != "stacked" else 1e-6)


DECAY = {"weight_decay": 0.1}


@pytest.mark.parametrize("kind", ["sequential", "stacked"])
@pytest.mark.parametrize(
    ("model", "local"),
    [(Spare, DECAY), (Spare, {**DECAY, "optimizer": "adam"}), (Skips, DECAY), (Skips, {"momentum": 0.9})],
)
@pytest.mark.usefixtures("one_thread")
def test_a_parameter_without_a_gradient_stays_as_it_is(model, local, kind):
    if kind == "stacked":
        with pytest.raises(FedsimError, match=r"mapped over clients it differs|a pass changes the attribute calls"):
            trained(kind, model, **local)
        return
    np.testing.assert_allclose(trained(kind, model, **local), by_hand(model, **local), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    ("model", "said", "kind"),
    [
        (Counts, "a pass changes the attribute calls", "stacked"),
        (Guesses, "a pass changes the generators of Python or NumPy", "stacked"),
        (Skips, r"skipped\.weight has no gradient in some batches", "sequential"),
        (OneMemory, "(first|second)\\.weight and (first|second)\\.weight lie in the same memory", "sequential"),
        (Seen, "lie in the same memory", "sequential"),
        (Complex, "layer Complex trains numbers of complex64", "sequential"),
        (Short, "layer Short trains numbers of float16", "sequential"),
        (Scripted, "layer act .* is a TorchScript module", "sequential"),
        (Freezes, "a pass changes whether first.weight is trained", "sequential"),
        (Swaps, "a pass puts another layer in the place of act", "sequential"),
        (Growing("layer"), r"a pass makes grown\.weight, which is not trained", "sequential"),
        (Growing("buffer"), "a pass makes the buffer mean, which is no part of an update", "sequential"),
    ],
)
def test_what_would_part_from_a_plain_loop_is_refused(model, said, kind):
    with pytest.raises(FedsimError, match=said):
        trained(kind, model, **({"optimizer": "adam"} if model is Skips else {}))


def test_hooks_of_a_parameter_that_a_copy_would_lose_are_refused():
    module = Plain()
    module.first.weight.register_hook(lambda slope: 0 * slope)
    with pytest.raises(ValueError, match=r"a copy of first\.weight has none of its hooks"):
        setup_of(module)


def test_a_function_that_gives_one_module_again_is_refused():
    module = Plain()
    with pytest.raises(FedsimError, match="gave the same module as before"):
        trained("sequential", lambda: module)


def test_a_layer_of_torch_that_draws_in_evaluations_draws_alike():
    def pooled():
        torch.manual_seed(5)
        pool = nn.Unflatten(1, (1, 6, 1)), nn.FractionalMaxPool2d((2, 1), (4, 1)), nn.Flatten()
        return nn.Sequential(*pool, nn.Linear(4, 3))

    executor = ExecutorChoice("sequential").build(setup_of(pooled))
    job, found = EvaluationJob(executor.flat.layout.initial), []
    for seed in (1, 2):
        torch.manual_seed(seed)
        found += executor.evaluate([job])
    assert found[0] == found[1]


def test_a_state_that_shows_late_is_refused_and_its_results_are_not_found():
    late = of_learning({"data": (X, Y, X, Y), "model": Late, "local": LOCAL}, rounds=12, cohort=None)
    store = MemoryStore()
    COUNT[0] = 0
    for _ in range(2):
        with pytest.raises(FedsimError, match="the same training gave other numbers after another client's"):
            simulate(late, store=store, executor="sequential")
        hits, COUNT[0] = store.hits, 0
    assert store.hits == hits
