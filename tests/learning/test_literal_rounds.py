"""Random small learners against loops over batches in float64, which have no code of fedsim's beside its draws."""

import numpy as np
import pytest
import torch
from torch import nn

from fedsim.learning import ExecutorChoice, Supervised, TrainingRun
from fedsim.streams import Streams
from tests.support.literal_rounds import Literal

CLIENTS, TRAINING = 4, 40
ADAPTIVE = {"learning_rate": 0.05, "tau": 0.05, "beta_1": 0.8, "initial": 0.01, "bias_correction": True}
PLAIN = {**ADAPTIVE, "beta_1": 0.0, "initial": 0.0025, "bias_correction": False}
SERVERS = (
    {"kind": "fedavg"},
    {"kind": "fedavgm", "momentum": 0.6, "learning_rate": 0.8},
    *({"kind": "fedadagrad", **options} for options in (ADAPTIVE, PLAIN)),
    *({"kind": kind, **options, "beta_2": 0.9} for kind in ("fedadam", "fedyogi") for options in (ADAPTIVE, PLAIN)),
)
SCHEDULES = (
    {"kind": "decay", "factor": 0.7, "every": 2, "by": "step"},
    {"kind": "decay", "factor": 0.5, "every": 1, "by": "round"},
    {"kind": "cosine", "over": 3, "least": 0.1, "by": "step"},
    {"kind": "cosine", "over": 2, "least": 0.0, "by": "round"},
)
ALGORITHMS = (
    *({"kind": kind} for kind in ("plain", "scaffold", "fedper", "fedbn")),
    *({"kind": kind, "mu": 0.5} for kind in ("fedprox", "fednova")),
    {"kind": "feddyn", "alpha": 0.3},
    {"kind": "moon", "mu": 2.0, "temperature": 0.5},
    *({"kind": kind, "widths": [1.0, 0.5, 0.25]} for kind in ("heterofl", "fedrolex")),
)
NORMED = ("fedbn", "fednova")
"""Algorithms whose models have statistics here."""
ROBUST = (
    {"kind": "median"},
    {"kind": "trimmed-mean", "share": 0.34},
    {"kind": "multi-krum", "byzantine": 0, "averaged": 2},
)
TASKS = (
    {"kind": "classification"},
    *({"kind": "regression", "loss": loss, "ignore": [-1.5]} for loss in ("squared", "absolute", "huber")),
    {"kind": "next-token", "ignore": [0, -100]},
    {"kind": "multi-label", "ignore": [255]},
)


def data_of(task, rng):
    """Return samples and targets, some of which count for nothing."""
    x, y = rng.normal(size=(55, 4)).astype(np.float32), rng.integers(0, 3, 55)
    if task["kind"] == "regression":
        x, y = rng.normal(size=(55, 3, 4)).astype(np.float32), rng.normal(size=(55, 3, 2)).astype(np.float32)
    elif task["kind"] == "next-token":
        x, y = rng.integers(0, 7, (2, 55, 5))
        x[0, 0] = y[0, 0] = 6
    elif task["kind"] == "multi-label":
        y = rng.integers(0, 2, (55, 3)).astype(np.uint8)
    if "ignore" in task:
        y[rng.random(y.shape) < 0.3] = y[1] = task["ignore"][-1]
    return x[:TRAINING], y[:TRAINING], x[TRAINING:], y[TRAINING:]


def module_of(task, algorithm):
    outputs = {"classification": 3, "regression": 2, "next-token": 7, "multi-label": 3}[task["kind"]]
    first = nn.Embedding(7, 5) if task["kind"] == "next-token" else nn.Linear(4, 5)
    inside = [nn.BatchNorm1d(5), nn.Tanh()] if algorithm in NORMED else [nn.Tanh()]
    return nn.Sequential(first, *inside, nn.Linear(5, outputs))


def some(rng, **options):
    return {name: value for name, value in options.items() if rng.random() < 0.35}


def drawn(seed):
    rng, algorithm = np.random.default_rng(seed), ALGORITHMS[seed % len(ALGORITHMS)]
    kind, one = algorithm["kind"], lambda rows: rows[rng.integers(len(rows))]
    narrow = "widths" in algorithm
    task = TASKS[0] if narrow or kind in NORMED else one(TASKS)
    adam = rng.random() < 0.3 and kind not in NORMED and task["kind"] != "next-token" and not narrow
    rate = {"optimizer": "adam", "learning_rate": 0.01} if adam else {"optimizer": "sgd", "learning_rate": 0.15}
    short = {
        "batch_size": int(rng.integers(2, 6)),
        "epochs": int(rng.integers(1, 3)),
        "short_batch": one(("keep", "skip")),
    }
    more = some(rng, proximal=0.4, weight_decay=0.1, clip_norm=0.5, steps=int(rng.integers(1, 6)), max_batches=3)
    more |= some(rng, schedule=one(SCHEDULES), **({} if narrow else {"keep_optimizer_state": True}))
    module = {"kind": "mlp", "hidden": [6]} if narrow else module_of(task, kind)
    table = {
        "task": task,
        "data": data_of(task, rng),
        "split": {"kind": "sizes", "samples": [*rng.integers(2, 10, CLIENTS - 1).tolist(), 0]},
        "allow_empty": True,
        "model": module,
        "local": {**rate, **short, **more, **({} if adam else some(rng, momentum=0.9))},
        "algorithm": algorithm,
        "server": one(SERVERS),
    }
    if kind in ("plain", "fedprox", "moon") and not adam:  # whose first steps are all of one size
        compression = {"kind": "top-k", "share": 0.3, "error_feedback": bool(rng.integers(2))}
        table |= one(({}, {"aggregation": one(ROBUST)}, {"compression": compression}))
    return table


@pytest.mark.parametrize("seed", [*range(12), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(12, 300))])
def test_rounds_are_those_of_the_loops(seed):
    table = drawn(seed)
    run = TrainingRun(CLIENTS, Streams(seed), executor=ExecutorChoice("sequential"))
    learner = Supervised.model_validate(table).build(run)
    samples, targets, test_samples, test_targets = (torch.from_numpy(one.copy()) for one in table["data"])
    whole = torch.float64 if samples.is_floating_point() else torch.int64
    loop = Literal(table, learner.architecture.build(), samples.to(whole), targets, learner._rows, seed)
    model, rng = learner.initial(), np.random.default_rng(seed)
    loop.model = learner.vector(model).astype(float)
    near = {"rtol": 3e-3, "atol": 3e-4}
    for version in range(3):
        clients = rng.permutation(CLIENTS - 1)[: 3 if "aggregation" in table else rng.integers(1, 4)]
        work, weights = rng.choice([0.1, 0.34, 0.7, 1.0, 1.0, 2.0], clients.size), rng.random(clients.size) + 0.1
        weights[0] *= "aggregation" in table or clients.size == 1 or rng.random() < 0.7
        weights *= rng.choice([1.0, 0.6]) / weights.sum()
        levels = rng.integers(0, 3, clients.size) if "widths" in table["algorithm"] else np.zeros(clients.size, int)
        updates = learner.updates(model, clients, work=work, level=levels if levels.any() else None)
        told = "loss", "loss_rms", *(["accuracy_gain"] if table["task"]["kind"] == "classification" else [])
        measured = learner.measure(updates, ("update", *told))
        model = learner.aggregate(model, updates, weights)
        sent, wanted = loop.round(version, clients.tolist(), work.tolist(), weights.tolist(), levels.tolist())
        np.testing.assert_allclose(measured["update"], sent, **near)
        np.testing.assert_allclose(np.stack([measured[name] for name in told], 1), wanted[:, : len(told)], **near)
        np.testing.assert_allclose(learner.vector(model), loop.model, **near)
        loop.model = learner.vector(model).astype(float)  # of float32, so that the two do not part
    counts = torch.isin(test_targets, torch.tensor(table["task"].get("ignore", [-999])), invert=True)
    counts = counts.flatten(1).any(1) if counts.ndim > 1 else counts
    judge(learner, model, loop, test_samples[counts].to(whole), test_targets[counts])


def judge(learner, model, loop, samples, targets):
    clients, tests = learner.evaluate_clients(model), learner._tests()
    for client in range(CLIENTS):
        rows = ~tests.rows[client]
        loss, right = (
            loop.judged(loop.of_client(client), samples[rows], targets[rows]) if rows.size else (np.nan, np.nan)
        )
        assert clients.loss[client] == pytest.approx(loss, rel=3e-3, abs=1e-4, nan_ok=True)
        if loop.table["task"]["kind"] == "classification":
            assert clients.accuracy[client] == pytest.approx(right, nan_ok=True)
    if not clients.own:
        found, (loss, _) = learner.evaluate(model), loop.judged(loop.model, samples, targets)
        assert found.loss == pytest.approx(loss, rel=1e-3)
    for most in (None, 2):
        probed, wanted = learner.probe_losses(model, np.arange(CLIENTS - 1), most, 7), []
        for client, rows in enumerate(loop.rows[: CLIENTS - 1]):
            order = Streams(loop.seed).generator("probe", client, 7).permutation(rows.size)
            seen = rows if most is None else rows[order[:most]]
            wanted.append(loop.judged(loop.model, loop.x[seen], loop.y[seen])[0])
        assert probed == pytest.approx(wanted, rel=1e-3, abs=1e-5)
