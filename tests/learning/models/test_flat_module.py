"""The names of a module's state in the flat vector."""

import numpy as np
import torch
from torch import nn

from fedsim.learning.models.flat_module import FlatModule, build_flat
from fedsim.learning.models.images import CNN3
from fedsim.learning.models.settings import Architecture


class Oddities(nn.Module):
    """Everything a module can hold: a tied weight, a frozen one, and buffers of several sorts."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm = nn.Linear(3, 3), nn.BatchNorm1d(3)
        self.tied = nn.Linear(3, 3, bias=False)
        self.tied.weight = self.first.weight
        self.frozen = nn.Parameter(torch.ones(2), requires_grad=False)
        self.register_buffer("seen", torch.zeros(()))
        self.register_buffer("table", torch.arange(4))
        self.register_buffer("scratch", torch.ones(5), persistent=False)

    def forward(self, x):
        self.seen += 1
        return self.tied(self.norm(self.first(x))) * self.frozen.sum()


def test_vector_holds_parameters_then_buffers_and_the_masks_say_which():
    module = Oddities()
    names = [name for name, _ in module.named_parameters()]
    flat = FlatModule(module)
    # weight 9, bias 3, norm 3 + 3; seen 1, running mean 3 and variance 3, counter 1
    assert flat.vector.numel() == 18 + 8
    assert names == ["frozen", "first.weight", "first.bias", "norm.weight", "norm.bias"]
    assert flat.layout.parameters == 18
    assert flat.layout.constants["frozen"].tolist() == [1, 1]
    assert flat.layout.exempt.tolist() == [False] * 12 + [True] * 6 + [True] * 8
    assert flat.layout.smallest_batch == 2
    np.testing.assert_array_equal(flat.layout.initial, flat.vector.detach().numpy())


def test_loading_moves_every_number_and_training_writes_into_the_vector():
    flat = FlatModule(Oddities())
    flat.load(np.arange(26, dtype=np.float32))
    module = flat.module
    assert module.frozen.tolist() == [1, 1]
    assert module.first.weight.flatten().tolist() == list(range(9))
    assert module.tied.weight is module.first.weight
    assert module.seen.item() == 18
    assert module.norm.num_batches_tracked.item() == 25
    module.train()
    torch.autograd.backward(module(torch.randn(4, 3)).sum())
    assert flat.vector[18] == 19
    assert flat.vector[25] == 26
    assert flat.parameters.grad[:9].abs().sum() > 0


def test_named_arrays_are_the_modules_own_state():
    torch.manual_seed(1)
    module, plain = Oddities(), Oddities()
    plain.load_state_dict(module.state_dict())
    flat = FlatModule(module)
    for each in (module, plain):
        torch.manual_seed(2)
        each(torch.randn(5, 3))  # moves the running statistics and counts a batch
    named = flat.layout.named(flat.vector.numpy())
    expected = plain.state_dict()
    assert named.keys() == expected.keys()
    assert {name: values.dtype for name, values in named.items()} == {
        name: values.numpy().dtype for name, values in expected.items()
    }
    for name, values in expected.items():
        np.testing.assert_array_equal(named[name], values.numpy())
    assert int(named["norm.num_batches_tracked"]) == 1


class Narrow(Oddities):
    """Its state is copies, and a frozen weight has a type that NumPy has not."""

    def __init__(self):
        super().__init__()
        self.base = nn.Parameter(torch.full((3,), 1.5).bfloat16(), requires_grad=False)

    def state_dict(self, *args, **options):
        return {name: array.detach().clone() for name, array in super().state_dict(*args, **options).items()}


def test_a_state_of_copies_has_the_numbers_of_the_vector():
    layout = FlatModule(Narrow()).layout
    named = layout.named(layout.initial + np.float32(1.0))
    np.testing.assert_array_equal(named["first.weight"].ravel(), layout.initial[:9] + 1)
    np.testing.assert_array_equal(named["tied.weight"], named["first.weight"])
    fresh = Narrow()
    fresh.load_state_dict({name: torch.from_numpy(values) for name, values in named.items()})
    assert (fresh.base.dtype, fresh.base.tolist()) == (torch.bfloat16, [1.5] * 3)


def test_an_exported_model_loads_into_a_fresh_module():
    flat = build_flat(CNN3(), (3, 32, 32), 10, seed=5)
    fresh = Architecture(CNN3(), (3, 32, 32), 10).build()
    named = flat.layout.named(flat.layout.initial)
    fresh.load_state_dict({name: torch.from_numpy(values) for name, values in named.items()}, strict=True)
    image = torch.ones(1, 3, 32, 32)
    torch.testing.assert_close(fresh.eval()(image), flat.module.eval()(image))
