"""The compiled executor against the one that it compiles, and what it refuses."""

import numpy as np
import pytest

from fedsim.errors import FedsimError
from fedsim.learning import MLP, ExecutorChoice, LocalTraining, TrainingJob, TrainingSetup
from fedsim.learning.models.flat_module import build_flat
from fedsim.testing import check_executor
from tests.support.plain_loop import Convolutions, Dropping
from tests.support.tiny_images import Tiny

LOCAL = LocalTraining(learning_rate=0.05, momentum=0.9, batch_size=4)


@pytest.fixture
def version():
    # Loading the compiler takes a second, which other tests shall not wait for.
    from fedsim.learning.executors.stacked.compiled import compiler_version

    try:
        return compiler_version()
    except FedsimError as error:
        pytest.skip(str(error))


def setup_of(model):
    return TrainingSetup(model, Tiny(side=6).load(), LOCAL, 0)


def jobs_of(setup):
    base = build_flat(setup.model, setup.data.shape, setup.data.classes, 0).layout.initial
    return [TrainingJob(base, np.arange(8 * i, 8 * i + 8), 1.0, np.random.default_rng(i)) for i in range(6)]


def built(model, executor="stacked-compiled", device="cpu"):
    return ExecutorChoice(executor, device).build(setup_of(model))


@pytest.mark.slow
@pytest.mark.usefixtures("version")
def test_the_contract_holds():
    check_executor("stacked-compiled", model=MLP(hidden=(3,)))


@pytest.mark.slow
def test_norms_are_those_of_the_traced_step(version):
    compiled, traced = built(Convolutions()), built(Convolutions(), "stacked")
    assert compiled.fingerprint == f"{traced.fingerprint}:compiled:{version}"
    jobs = [jobs_of(setup_of(Convolutions())) for _ in range(2)]
    for one, other in zip(compiled.train(jobs[0]), traced.train(jobs[1]), strict=True):
        # Some hundred roundings of float32 over two steps.
        np.testing.assert_allclose(one.difference, other.difference, rtol=1e-4, atol=2e-5)


def test_it_is_refused_where_no_compiler_works():
    from torch._inductor import config

    message = "'stacked-compiled' needs a C\\+\\+ compiler.* none that works; allowed: .*CXX.*'stacked'"
    with config.patch({"cpp.cxx": (None, "no-such-compiler")}), pytest.raises(FedsimError, match=message):
        built(MLP(hidden=(3,)))


@pytest.mark.usefixtures("version")
def test_random_draws_are_refused():
    with pytest.raises(FedsimError, match=r"learning\.model: a module that draws random.*allowed.*'stacked'"):
        built(Dropping())


def test_other_devices_are_refused():
    with pytest.raises(FedsimError, match=r"device: 'cuda' is not allowed.*allowed: 'cpu'"):
        built(MLP(hidden=(3,)), device="cuda")
