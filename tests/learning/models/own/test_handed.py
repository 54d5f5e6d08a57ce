"""Modules of torch, and classes and functions that give them, as models."""

import functools
import threading
import warnings

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.utils import prune

from fedsim import Scenario, load_model, simulate
from fedsim.errors import PartError, ScenarioError
from fedsim.identity import identity
from fedsim.learning import MODELS
from fedsim.learning.models.own.trial import content_of
from tests.support.short_runs import of_learning
from tests.support.tiny_targets import TinyTargets


class Net(nn.Module):
    """A dense layer, which fails in training if it is told so."""

    def __init__(self, classes=3, width=4, fails=False):
        super().__init__()
        self.first, self.last, self.fails = nn.Linear(5, width), nn.Linear(width, classes), fails

    def forward(self, samples):
        if self.fails and self.training:
            raise KeyError("no such word")
        return self.last(torch.relu(self.first(samples)))


def stacked_layers(shape, classes):
    return nn.Sequential(nn.Linear(shape[0], classes))


class Renamed(Net):
    def state_dict(self, *args, **options):
        return {f"own.{name}": array for name, array in super().state_dict(*args, **options).items()}


class Widening(Net):
    def forward(self, samples):
        torch.set_default_dtype(torch.float64)
        return super().forward(samples)


def script():
    with warnings.catch_warnings(action="ignore", category=FutureWarning):
        return torch.jit.script(nn.Linear(5, 3))


def lazy_layers(classes):
    return nn.Sequential(nn.Sequential(nn.LazyBatchNorm1d(affine=False)), nn.Linear(5, classes))


def scenario(model, **more):
    return of_learning({"data": TinyTargets(of="labels"), "model": model, **more}, rounds=2, cohort=3)


@pytest.mark.parametrize(
    "model",
    [
        pytest.param(Net(), id="module"),
        pytest.param(Net, id="class", marks=pytest.mark.slow),
        pytest.param(functools.partial(Net, width=6), id="partial", marks=pytest.mark.slow),
        pytest.param(stacked_layers, id="function", marks=pytest.mark.slow),
        pytest.param({"kind": f"{__name__}:Net", "width": 6}, id="named class"),
        pytest.param({"kind": f"{__name__}:stacked_layers"}, id="named function", marks=pytest.mark.slow),
    ],
)
def test_executors_agree_on_each_way_to_hand_a_model_over(model):
    one, *others = (simulate(scenario(model), executor=kind) for kind in ("sequential", "processes", "stacked"))
    assert one.evaluations.equals(others[0].evaluations)
    losses = one.evaluations.column("loss").to_numpy()
    assert losses == pytest.approx(others[1].evaluations.column("loss").to_numpy(), rel=1e-5)


class Coarse(Net):
    def forward(self, samples):
        with torch.autocast("cpu", torch.bfloat16):
            return super().forward(samples)


@pytest.mark.parametrize("module", [Net(), Coarse()], ids=["float32", "scores of bfloat16"])
def test_a_module_begins_with_its_own_numbers_and_is_left_as_it_is(module):
    before = {name: array.clone() for name, array in module.state_dict().items()}
    found = simulate(scenario(module, local={"learning_rate": 1e-12}), executor="sequential")
    after = load_model(found).state_dict()
    for name, array in module.state_dict().items():
        assert torch.equal(array, before[name])
        assert np.allclose(after[name], array, atol=1e-6)
    data = TinyTargets(of="labels").load()
    scores, labels = module(torch.tensor(data.test_x)).float(), torch.tensor(data.test_y)
    right = nn.functional.cross_entropy(scores, labels).item()
    assert found.column("evaluations", "loss")[0] == pytest.approx(right, rel=1e-6)


class Scaled(nn.Module):
    def __init__(self, held):
        super().__init__()
        self.layer, self.held = nn.Linear(2, 2), held
        nn.init.ones_(self.layer.weight)
        nn.init.zeros_(self.layer.bias)

    def forward(self, samples):
        return self.layer(samples)


class Hiding:
    """Says the same of itself whatever it holds."""

    def __init__(self, factor):
        self.factor = factor

    def __repr__(self):
        return "Hiding()"


def long(last):
    found = np.ones((4, 1000), dtype=np.float32)
    found[2, 500] = last
    return found


def buffered(factor):
    module = Scaled(None)
    module.register_buffer("mask", torch.full((2,), float(factor)), persistent=False)
    return module


def frozen(*names):
    module = Scaled(None)
    for name, parameter in module.named_parameters():
        parameter.requires_grad_(name not in names)
    return module


def two_layers(*, tied):
    module = nn.Sequential(Scaled(None), Scaled(None))
    if tied:
        module[1].layer.weight = module[0].layer.weight
    return module


def itself(factor):
    found = {"factor": factor}
    found["itself"] = found
    return found


def weighing(weight):
    module = Scaled(None)
    nn.init.constant_(module.layer.weight, weight)
    return module


PAIRS = {
    "a weight": (weighing, [(1,), (3,)]),
    "a number": (Scaled, [(True,), (False,)]),
    "an option": (lambda width: {"kind": f"{__name__}:Net", "width": width}, [(4,), (5,)]),
    "a frozen weight": (frozen, [(), ("layer.weight",), ("layer.bias",)]),
    "a buffer that no state has": (buffered, [(1,), (3,)]),
    "a long tensor": (lambda last: Scaled(torch.from_numpy(long(last))), [(1,), (3,)]),
    "a long array": (lambda last: Scaled(long(last)), [(1,), (3,)]),
    "types of arrays": (lambda kind: Scaled(np.zeros(2, dtype=kind)), [("int32",), ("float32",)]),
    "a tensor in a list": (lambda last: Scaled([torch.from_numpy(long(last))]), [(1,), (3,)]),
    "an object in an object": (lambda factor: Scaled(Hiding(Hiding(factor))), [(1,), (3,)]),
    "functions of torch": (Scaled, [(torch.tanh,), (torch.relu,)]),
    "what holds itself": (lambda factor: Scaled(itself(factor)), [(1,), (3,)]),
    "layers with one weight": (lambda tied: two_layers(tied=tied), [(False,), (True,)]),
}


@pytest.mark.parametrize(("made", "givens"), PAIRS.values(), ids=PAIRS)
def test_modules_that_differ_have_other_digests_and_alike_ones_the_same(made, givens):
    digests = [[identity(MODELS.make(made(*given))) for given in givens] for _ in "12"]
    assert digests[0] == digests[1]
    assert len(set(digests[0])) == len(givens)


def test_digests_of_ordinary_modules_stay():
    """They name results that stores hold already."""
    module = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Dropout(0.3), nn.Embedding(5, 3))
    with torch.no_grad():
        for array in (*module.parameters(), *module.buffers()):
            array.copy_(torch.arange(array.numel()).view(array.shape))
    assert content_of(module) == "577088bb00cac7081c49b9d3ca2c659b"


def test_what_pickle_cannot_tell_is_shared_with_no_other_module():
    lock = threading.Lock()
    assert len({content_of(Scaled(lock)) for _ in range(3)}) == 3


def test_named_models_are_written_as_toml_and_objects_are_not():
    named = scenario(Net)
    assert Scenario.from_toml(scenario({"kind": f"{__name__}:Net"}).replace({"learning.data": "digits"}).to_toml())
    assert named.describe()["learning"]["model"] == {"kind": f"{__name__}:Net"}
    with pytest.raises(ScenarioError, match=r"learning.model: an object of .*:Net cannot be written as TOML"):
        scenario(Net()).to_toml()


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (Net(classes=7), r"Net gave scores of shape \(1, 7\) for one sample"),
        (nn.Linear(5, 3).requires_grad_(False), "Linear has no parameter that is trained"),
        (Renamed, "model Renamed: state_dict has an array own.first.weight, and there is no layer own.first"),
        (Widening, "model .*Widening: forward sets the default type of torch to torch.float64"),
        ({"kind": f"{__name__}:lazy_layers"}, r"model .*:lazy_layers: layer 0\.0 \(LazyBatchNorm1d\) has no sizes yet"),
        (
            lambda: nn.Sequential(nn.Linear(5, 3, device="meta")),
            r"layer 0 \(Linear\) is on the device meta, without num",
        ),
        ({"kind": f"{__name__}:script"}, r"model .*:script: it is a TorchScript module"),
        (
            nn.Linear(2, 3),
            r"Linear.forward failed with RuntimeError: .*mat1 and mat2.*; its sample was float32 of shape",
        ),
        (Net().double(), r"Net.forward failed with .*; its own numbers become so by model.float\(\)"),
        ({"kind": f"{__name__}:scenario", "model": "mlp"}, "scenario gave Scenario"),
    ],
)
def test_a_model_that_does_not_fit_is_refused_before_the_first_round(model, words):
    with pytest.raises(PartError, match=words) as found:
        simulate(scenario(model), executor="sequential")
    assert len(str(found.value).splitlines()) == 5


@pytest.mark.parametrize(
    ("module", "words"),
    [
        (
            nn.Linear(5, 3, device="meta"),
            r"layer Linear is on the device meta, without numbers; allowed: a module on the",
        ),
        (script(), "it is a TorchScript module; allowed: the torch.nn.Module of which"),
        (nn.Sequential(nn.LazyLinear(3)), r"layer 0 \(LazyLinear\) has no sizes yet; allowed: layers with sizes, or"),
        (3, "is no model"),
        (lambda classes, depth: (classes, depth), "needs depth"),
        (
            prune.random_unstructured(nn.Linear(5, 3), "weight", 0.5),
            r"it cannot be copied \(Only Tensors created .*; allowed: a class or function that gives the module",
        ),
    ],
)
def test_what_is_no_model_is_refused_with_the_scenario(module, words):
    with pytest.raises(ScenarioError, match=rf"(?s)learning.model: .*{words}"):
        scenario(module)


def test_a_lazy_module_is_taken_once_it_has_been_called():
    module = nn.Sequential(nn.LazyLinear(3))
    module(torch.zeros(1, 5))
    assert np.isfinite(simulate(scenario(module), executor="sequential").curve("round", "loss")[1]).all()


@pytest.mark.parametrize("executor", ["sequential", "processes"])
def test_a_failure_names_part_client_and_round_in_five_lines(executor):
    with pytest.raises(PartError) as found:
        simulate(scenario(Net(fails=True)), executor=executor)
    what, where, client, number, _ = str(found.value).splitlines()
    assert what.endswith("test_handed:Net.forward failed with KeyError: 'no such word'")
    assert "test_handed.py" in where
    assert client.strip() in {f"client: {one}" for one in range(4)}
    assert number.strip() == "round: 1"
