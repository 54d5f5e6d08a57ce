"""The compiled executor against the one that it compiles, and what it refuses."""

from collections.abc import Callable

import numpy as np
import pytest
from torch._inductor import config

from fedsim.errors import FedsimError
from fedsim.learning import MLP, LocalTraining, TrainingJob, TrainingSetup
from fedsim.learning.executors.stacked.compiled import StackedCompiledExecutor, compiler_version
from fedsim.learning.executors.stacked.executor import StackedExecutor
from fedsim.learning.models.flat_module import build_flat
from fedsim.learning.models.settings import ModelPart
from fedsim.testing import check_executor
from tests.learning.executors.plain_loop import Convolutions, Dropping
from tests.support.tiny_images import Tiny

LOCAL = LocalTraining(learning_rate=0.05, momentum=0.9, batch_size=4)


def missing() -> str:
    try:
        compiler_version()
    except FedsimError as error:
        return str(error)
    return ""


compiling = pytest.mark.skipif(bool(missing()), reason=missing() or "it works")


def setup_of(model: ModelPart) -> TrainingSetup:
    return TrainingSetup(model, Tiny(side=6).load(), LOCAL, 0)


def jobs_of(setup: TrainingSetup) -> list[TrainingJob]:
    base = build_flat(setup.model, setup.data.shape, setup.data.classes, 0).layout.initial
    return [TrainingJob(base, np.arange(8 * i, 8 * i + 8), 1.0, np.random.default_rng(i)) for i in range(6)]


@pytest.mark.slow
@compiling
def test_the_contract_holds() -> None:
    check_executor("stacked-compiled", model=MLP(hidden=(3,)))


@pytest.mark.slow
@compiling
def test_norms_are_those_of_the_traced_step() -> None:
    setup = setup_of(Convolutions())
    compiled, traced = StackedCompiledExecutor(setup), StackedExecutor(setup)
    assert compiled.fingerprint == f"{traced.fingerprint}:compiled:{compiler_version()}"
    for one, other in zip(compiled.train(jobs_of(setup)), traced.train(jobs_of(setup)), strict=True):
        # Some hundred roundings of float32 over two steps.
        np.testing.assert_allclose(one.difference, other.difference, rtol=1e-4, atol=2e-5)


def no_compiler() -> StackedCompiledExecutor:
    with config.patch({"cpp.cxx": (None, "no-such-compiler")}):
        return StackedCompiledExecutor(setup_of(MLP(hidden=(3,))))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        pytest.param(no_compiler, "'stacked-compiled' needs a C\\+\\+ compiler.*none.*CXX.*'stacked'", id="compiler"),
        pytest.param(
            lambda: StackedCompiledExecutor(setup_of(Dropping())),
            "draws random.*'stacked'",
            id="draws",
            marks=compiling,
        ),
        pytest.param(
            lambda: StackedCompiledExecutor(setup_of(MLP()), "cuda"),
            "device: 'cuda' is not allowed.*'cpu'",
            id="device",
        ),
    ],
)
def test_what_it_cannot_do_is_refused_at_build(make: Callable[[], StackedCompiledExecutor], message: str) -> None:
    with pytest.raises(FedsimError, match=message):
        make()
