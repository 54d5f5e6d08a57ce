"""Modes of torch that a caller has set: no number depends on them, and they are the caller's again at the end."""

import contextlib
import threading
from functools import cache, partial

import pytest
import torch
from torch import nn

from fedsim import simulate
from fedsim.learning import MemoryStore
from fedsim.learning.torch_modes import own_modes
from tests.support.short_runs import of_learning

DIGITS = {"data": {"kind": "digits", "train_limit": 60}, "model": {"kind": "mlp", "hidden": [4]}}


@contextlib.contextmanager
def of_process(set_mode, now, other):
    before = now()
    set_mode(other)
    try:
        yield
    finally:
        found = now()
        set_mode(before)
        assert found == other


MODES = {
    "autocast": lambda: torch.autocast("cpu", torch.bfloat16),
    "inference": torch.inference_mode,
    "no-grad": torch.no_grad,
    "default-type": lambda: of_process(torch.set_default_dtype, torch.get_default_dtype, torch.float64),
    "default-device": lambda: torch.device("meta"),
    "deterministic": lambda: of_process(
        torch.use_deterministic_algorithms, torch.are_deterministic_algorithms_enabled, True
    ),
    "products": lambda: of_process(torch.set_float32_matmul_precision, torch.get_float32_matmul_precision, "medium"),
}


class Layers(nn.Module):
    """Convolutions and attention, for which torch has several kernels, of numbers near 0."""

    def __init__(self):
        super().__init__()
        self.convolution, self.scores = nn.Conv2d(1, 8, 3, stride=2), nn.Linear(8, 10)
        self.attention = nn.TransformerEncoderLayer(8, 2, 16, 0.0, batch_first=True)

    def forward(self, x):
        found = self.convolution(x * 1e-20 * 1e-20 * 1e20 * 1e20).flatten(2).transpose(1, 2)
        return self.scores(self.attention(found).mean(1))


def attribute(owner, name, other):
    return of_process(partial(setattr, owner, name), lambda: getattr(owner, name), other)


KERNELS = {
    "attention": lambda: of_process(torch.backends.cuda.enable_flash_sdp, torch.backends.cuda.flash_sdp_enabled, False),
    "encoder": lambda: of_process(
        torch.backends.mha.set_fastpath_enabled, torch.backends.mha.get_fastpath_enabled, False
    ),
    "convolution": lambda: attribute(torch.backends.mkldnn, "enabled", False),
    "precision": lambda: attribute(torch.backends.mkldnn.matmul, "fp32_precision", "bf16"),
    "denormals": lambda: of_process(torch.set_flush_denormal, lambda: not float(torch.tensor([1e-40]).mul(1.0)), True),
}


def losses(store=False, **learning):
    scenario = of_learning({**DIGITS, **learning}, rounds=2, cohort=None)
    return simulate(scenario, store=store, executor="sequential").evaluations.column("loss").to_pylist()


@pytest.mark.parametrize("mode", MODES)
def test_no_number_depends_on_a_mode(mode):
    plain, store = losses(), MemoryStore()
    with MODES[mode]():
        assert losses(store) == plain
    assert losses(store) == plain


@cache
def layered():
    torch.manual_seed(0)
    module = Layers()
    return module, losses(model=module)


@pytest.mark.parametrize("mode", KERNELS)
def test_no_number_depends_on_a_choice_of_kernels(mode):
    if mode == "precision" and not hasattr(torch.backends.mkldnn, "matmul"):
        pytest.skip("torch below 2.9 has one precision for all products")
    module, plain = layered()
    with KERNELS[mode]():
        assert losses(model=module) == plain


def test_a_factory_of_the_users_makes_its_module_without_them():
    def factory(shape, classes):
        return nn.Sequential(nn.Flatten(), nn.Linear(shape[-1] * shape[-2], classes))

    plain = losses(model=factory)
    with MODES["default-type"](), MODES["inference"]():
        assert losses(model=factory) == plain


def test_modes_of_the_process_stay_until_the_last_thread_is_done():
    inside, done = threading.Event(), threading.Event()

    def other():
        with own_modes():
            inside.set()
            done.wait(10)

    with MODES["default-type"]():
        thread = threading.Thread(target=other)
        thread.start()
        inside.wait(10)
        with own_modes():
            pass
        assert torch.get_default_dtype() == torch.float32
        done.set()
        thread.join()
        assert torch.get_default_dtype() == torch.float64
