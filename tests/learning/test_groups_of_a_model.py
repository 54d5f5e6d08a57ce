"""Trained numbers are sent and noised, statistics sent and averaged, all others stay: bits, seconds, joules by hand."""

from collections import OrderedDict

import numpy as np
import pytest
import torch
from torch import nn

from fedsim import Scenario, simulate
from fedsim.errors import FedsimError
from fedsim.learning import Supervised, TrainingRun
from fedsim.learning.algorithms.personal import PersonalPart
from fedsim.privacy import L2ClippedGaussian
from fedsim.streams import Streams

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(40, 5)).astype("float32"), RNG.integers(0, 3, 40)
GAUSSIAN = {"kind": "gaussian", "clip": 1.0, "delta": 1e-5}
SGD = {"learning_rate": 0.1, "epochs": 1, "batch_size": 5}


def probe():
    base = nn.Linear(5, 64).requires_grad_(False)
    return nn.Sequential(OrderedDict(base=base, activation=nn.ReLU(), head=nn.Linear(64, 3, bias=False)))


def tied():
    first, second = nn.Linear(5, 5), nn.Linear(5, 5)
    second.weight = first.weight
    return nn.Sequential(first, nn.ReLU(), second, nn.Linear(5, 3))


def normed():
    layers = {"first": nn.Linear(5, 4), "norm": nn.BatchNorm1d(4), "activation": nn.ReLU(), "head": nn.Linear(4, 3)}
    return nn.Sequential(OrderedDict(layers))


NUMBERS = {probe: 64 * 3, tied: 25 + 2 * 5 + 18, normed: (24 + 8 + 15) + (4 + 4 + 1)}


def run(model, **tables):
    learning = {"data": (X, Y, X, Y), "model": model, "local": SGD, **tables.pop("learning", {})}
    scenario = {
        "name": "groups",
        "crowd": {"clients": 4},
        "network": {"kind": "fedscale", "median_kbps": 100.0, "sigma": 0.0},
        "devices": {
            "compute": {"kind": "rate", "samples_per_s": 100.0, "spread_sigma": 0.0, "jitter_sigma": 0.0},
            "energy": {
                "kind": "battery", "capacity_j": 1e6, "receive_j_per_bit": 1e-6, "transmit_j_per_bit": 3e-6,
                "compute_w": 2.0,
            },
        },
        "rounds": {"count": 3, "policy": {"kind": "deadline", "deadline_s": 60.0}},
        "selector": "all",
        "learning": learning,
    }  # fmt: skip
    return simulate(Scenario.model_validate({**scenario, **tables}), store=False)


@pytest.mark.parametrize("model", NUMBERS, ids=lambda model: model.__name__)
def test_bits_seconds_and_joules_are_those_of_what_is_trained(model):
    bits = 32 * NUMBERS[model]
    row = run(model).participations.to_pylist()[0]
    assert (row["downlink_bits"], row["uplink_bits"]) == (bits, bits)
    assert row["uplink_s"] == pytest.approx(bits / 102_400)
    assert row["energy_j"] == pytest.approx((1e-6 + 3e-6) * bits + 2.0 * row["compute_s"])


@pytest.mark.parametrize(
    ("train", "names", "numbers"),
    [
        ([], ("1", "3", "5"), (5 * 8 + 8) + (8 * 4 + 4) + (4 * 3 + 3)),
        (["5"], ("5",), 4 * 3 + 3),  # a probe: the last layer
        (["3", "5.*"], ("3", "5"), (8 * 4 + 4) + (4 * 3 + 3)),
        (["*.bias"], ("1.b", "3.b", "5.b"), 8 + 4 + 3),
    ],
)
def test_the_named_layers_are_trained_and_sent_and_no_other(train, names, numbers):
    model = {"kind": "mlp", "hidden": [8, 4], "train": train}
    found = run(model)
    row = found.participations.to_pylist()[0]
    assert (row["downlink_bits"], row["uplink_bits"]) == (32 * numbers,) * 2
    once = {"count": 1, "policy": {"kind": "deadline", "deadline_s": 60.0}}
    first, last = dict(run(model, rounds=once).model().named_parameters()), found.model()
    moved = {name for name, one in last.named_parameters() if not torch.equal(one, first[name])}
    assert moved == {name for name in first if name.startswith(names)}


def test_the_trained_part_of_ones_own_class_is_an_option_beside_its_own():
    model = {"kind": "torch.nn:Linear", "in_features": 5, "out_features": 3, "train": ["bias"]}
    assert run(model).participations.to_pylist()[0]["uplink_bits"] == 32 * 3


def layered(classes):
    hidden = nn.Linear(5, 4), nn.ReLU(), nn.Linear(4, 4), nn.ReLU()
    return nn.Sequential(nn.Flatten(), *hidden, nn.Linear(4, classes))


@pytest.mark.parametrize(
    ("train", "said"),
    [
        (
            ["5", "head*"],
            r"train: 'head\*' fits no parameter; allowed: names or patterns of 1\.weight, 1\.bias, 3\.weight",
        ),
        ("5", "learning.model.train: '5' is not allowed"),
        ([""], "learning.model.train.0: '' is not allowed"),
    ],
)
@pytest.mark.parametrize("own", [False, True])
def test_what_fits_nothing_is_refused_with_what_there_is(own, train, said):
    kind = {"kind": f"{__name__}:layered"}
    with pytest.raises(FedsimError, match=said):
        run({**(kind if own else {"kind": "mlp", "hidden": [4, 4]}), "train": train})


@pytest.mark.parametrize("compression", ["none", {"kind": "top-k", "share": 0.5}, {"kind": "qsgd", "levels": 7}])
@pytest.mark.parametrize("server", ["fedavg", "fedadam"])
def test_no_step_moves_what_stays(compression, server):
    net = probe()
    privacy = {"budget": {"kind": "unlimited", "epsilon": 5.0}, "mechanism": GAUSSIAN}
    found = run(net, privacy=privacy, learning={"compression": compression, "server": server}).model()
    assert torch.equal(found.base.weight, net.base.weight)
    assert not torch.equal(found.head.weight, net.head.weight)


def test_a_probe_costs_no_operations_for_gradients_of_its_base():
    """Forward 2 (5 x 64 + 64 x 3), backward 2 (64 x 3) for the gradient of the head alone."""
    learner = Supervised.model_validate({"data": (X, Y, X, Y), "model": probe}).build(TrainingRun(4, Streams(0)))
    assert learner.flops_per_sample == 1024 + 384


def test_tied_weights_are_compressed_once():
    row = run(tied, learning={"compression": {"kind": "qsgd", "levels": 127}}).participations.to_pylist()[0]
    assert row["uplink_bits"] == 8 * 53 + 32 * 5  # five arrays: two weights, three biases


@pytest.mark.parametrize("where", ["client", "server"])
@pytest.mark.parametrize("noised", [False, True])
def test_statistics_are_averaged_in_clear_unless_noise_is_asked_for(noised, where):
    """The first round trains alike with and without noise, which comes after it."""
    budget = {"kind": "unlimited", "epsilon": 5.0}
    privacy = {"budget": budget, "mechanism": {**GAUSSIAN, "noise_statistics": noised}, "where": where}
    rounds = {"count": 1, "policy": {"kind": "deadline", "deadline_s": 60.0}, "weights": "uniform"}
    found = run(normed, privacy=privacy, rounds=rounds)
    plain = run(normed, rounds=rounds).model()
    assert torch.allclose(found.model().norm.running_mean, plain.norm.running_mean) != noised
    assert not torch.allclose(found.model().first.weight, plain.first.weight)
    told = "9 running statistics are averaged in clear, so that the guarantee is that of the 47 trained numbers alone"
    assert any(told in note for note in found.notes) != noised


def test_statistics_in_clear_and_with_noise_is_refused():
    with pytest.raises(ValueError, match="noise_statistics = True is not allowed with exempt_buffers = True"):
        L2ClippedGaussian(clip=1.0, exempt_buffers=True, noise_statistics=True)


def test_fedbn_shares_all_but_batch_normalisation():
    """Scale, shift, mean and variance of four channels and a counter stay: 39 of 56 numbers are sent."""
    history = run(normed, learning={"algorithm": "fedbn"})
    row, found = history.participations.to_pylist()[-1], history.model()
    assert row["uplink_bits"] == row["downlink_bits"] == 32 * (24 + 15)
    assert found.norm.running_mean.tolist() == [0.0] * 4  # the server's model has those of the start
    assert found.norm.weight.tolist() == [1.0] * 4
    with pytest.raises(FedsimError, match="'fedbn' keeps batch normalisation with the clients, and this model has"):
        run(probe, learning={"algorithm": "fedbn"})


@pytest.mark.parametrize("model", [probe, tied])
def test_a_personal_part_with_all_that_learns_is_refused(model):
    layers = {probe: 1, tied: 2}[model]
    with pytest.raises(FedsimError, match=rf"layers: {layers} is not allowed with a model of {layers} layers that are"):
        run(model, learning={"algorithm": {"kind": "fedper", "layers": layers}})


def test_an_algorithm_that_shares_no_trained_number_is_refused():
    class Alone(PersonalPart):
        def part(self, layout):
            return np.arange(layout.initial.size) >= layout.parameters

    with pytest.raises(FedsimError, match="leaves all trained numbers of this model with the clients"):
        run(normed, learning={"algorithm": Alone()})
