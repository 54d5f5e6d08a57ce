"""The names of a module's state in the flat vector."""

import numpy as np
import torch
from torch import Tensor, nn

from fedsim.learning.models.flat_module import FlatModule, build_flat
from fedsim.learning.models.images import CNN3
from fedsim.learning.models.settings import Architecture


class Tied(nn.Module):
    """Two layers with one weight, batch normalisation, and a constant that no training changes."""

    order: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm, self.second = nn.Linear(3, 3), nn.BatchNorm1d(3), nn.Linear(3, 3)
        self.second.weight = self.first.weight
        self.register_buffer("order", torch.tensor([2, 0, 1]))

    def forward(self, x):
        return self.second(self.norm(self.first(x[:, self.order])))


def test_named_arrays_are_the_modules_own_state():
    torch.manual_seed(1)
    module, plain = Tied(), Tied()
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


class Narrow(Tied):
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
    np.testing.assert_array_equal(named["second.weight"], named["first.weight"])
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
