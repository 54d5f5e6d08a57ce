"""Which fields of a scenario move which digests: all that changes a result does, and nothing else.

Every field of a scenario with many parts is changed, one at a time, and its entry in `MOVES` says what must move.
"""

import typing
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, get_args

import numpy as np
import pytest
from pydantic import BaseModel

from fedsim import Scenario
from fedsim.errors import ScenarioError
from fedsim.learning import MODELS, SERVER_OPTIMIZERS, Evaluation, ExecutorChoice, LocalTraining, MemoryStore, Release
from fedsim.learning.executors.sequential import SequentialExecutor
from fedsim.learning.store.contracts import Record
from fedsim.privacy.mechanisms import MECHANISMS
from fedsim.registry import Recipe, Slot, identity, nested
from fedsim.simulation import build_context

SCENARIO: Final = Scenario(
    name="digests",
    crowd={"clients": 6, "placement": {"kind": "disc", "radius_m": 100.0}},
    learning={
        "data": {"kind": "digits", "train_limit": 120},
        "split": {"kind": "dirichlet", "alpha": 5.0},
        "model": {"kind": "mlp", "hidden": [4]},
        "local": {"momentum": 0.5, "max_batches": 3},
        "server": {"kind": "fedavgm"},
        "model_bits": 1e6,
        "flops_per_sample": 1e3,
    },
    privacy={
        "budget": {"kind": "geometric", "epsilon": 40.0, "eta": 0.04},
        "mechanism": {"kind": "laplace-coordinate", "delta_f": 0.012},
    },
    network={
        "kind": "cell",
        "path_loss": {"kind": "log-distance", "exponent": 3.7},
        "fading": {"kind": "rayleigh", "coherence_s": 0.02},
        "downlink": {"bandwidth_hz": 1e6, "power_dbm": 33.0},
        "uplink": {"bandwidth_hz": 1e5, "power_dbm": 23.0},
    },
    devices={
        "compute": {"kind": "rate", "samples_per_s": 500.0},
        "dropout": {"kind": "hazard", "rate_per_s": 0.1},
    },
    rounds={
        "count": 5,
        "policy": {"kind": "deadline", "deadline_s": 1.0},
        "late": {"kind": "stale"},
        "until_s": 100.0,
        "target_accuracy": 0.9,
    },
    selector={"kind": "uniform", "cohort": 3},
)

ALL: Final = {"start", "training", "sent", "evaluation"}
"""Digests of the first model, of trainings, of what is sent after privacy, and of the next model's evaluation."""
TRAINED: Final = ALL - {"start"}

MOVES: Final[dict[str, set[str]]] = {
    "seed": ALL,
    "crowd.clients": TRAINED,
    "learning.data.train_limit": ALL,
    "learning.split": TRAINED,
    "learning.split.alpha": TRAINED,
    "learning.model.hidden": ALL,
    "learning.split.per": TRAINED,
    "learning.local.optimizer": TRAINED,
    "learning.local.learning_rate": TRAINED,
    "learning.local.momentum": TRAINED,
    "learning.local.proximal": TRAINED,
    "learning.local.epochs": TRAINED,
    "learning.local.batch_size": TRAINED,
    "learning.local.max_batches": TRAINED,
    "learning.local.short_batch": TRAINED,
    "learning.local.keep_optimizer_state": TRAINED,
    "learning.server": {"evaluation"},
    "learning.server.momentum": {"evaluation"},
    "learning.server.learning_rate": {"evaluation"},
    "privacy.mechanism.delta_f": {"sent", "evaluation"},
    "privacy.mechanism.exempt_buffers": {"sent", "evaluation"},
}
"""What must move, by the path of the field; all that `NOTHING` names moves nothing."""

# A split counts by the samples that each client has: here every client has more than the fewest that are asked for.
NOTHING: Final = [
    "learning.split.min_samples",
    "name",
    "crowd.placement",
    "learning.model_bits",
    "learning.flops_per_sample",
]

UNTOUCHED: Final = ("network", "devices", "rounds", "selector", "results", "privacy.budget", "crowd.placement")
"""Tables that no learner is told of."""


class Noting(MemoryStore):
    """Has an evaluation under every digest, and notes which were asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []

    def records(self, digests: Sequence[str]) -> dict[str, Record]:
        self.asked += digests
        return {digest: {"accuracy": 0.5, "loss": 1.0} for digest in digests}


def digests(scenario: Scenario, **options: Any) -> dict[str, Any]:
    store = Noting()
    learner = build_context(scenario, None, store, options.get("executor", ExecutorChoice())).learner
    start, client = learner.initial(), np.arange(6)
    plain, sent = learner.updates(start, client), learner.updates(start, client, {0: Release(0.5, 1)})
    following = learner.aggregate(start, sent, np.full(6, 1 / 6))
    assert learner.evaluate(following) == Evaluation(0.5, 1.0)
    return {
        "start": start.digest,
        "training": [update.digest for update in plain],
        "sent": [update.digest for update in sent],
        "evaluation": store.asked,
    }


def fields(part: object, path: str = "") -> Iterator[tuple[str, object]]:
    """Yield path and value of every field of a part and of the parts in it."""
    for name, value in nested(part):
        here = f"{path}.{name}" if path else name
        yield here, value
        if isinstance(value, BaseModel | Recipe):
            yield from fields(value, here)


def others(path: str, value: object) -> Iterator[object]:
    """Yield values that a field may have instead."""
    annotation, slot = declared(path)
    if slot is not None:
        yield from (kind for kind in slot.registry.kinds() if kind != slot.registry.kind_of(value))
    for choice in literals(annotation):
        if choice != value:
            yield choice
    if isinstance(value, bool):
        yield not value
    elif isinstance(value, int | float):
        yield from (value + 1, value * 2, value / 2, value * 0.9)
    elif isinstance(value, tuple | list):
        yield [*value, *value]
    elif isinstance(value, str):
        yield value + "x"
    elif value is None:
        yield from (1, 0.5, 2, True, 100.0)


def declared(path: str) -> tuple[Any, Slot | None]:
    part: Any = SCENARIO
    *owners, last = path.split(".")
    for name in owners:
        part = dict(nested(part))[name]
    field = type(part).model_fields.get(last) if isinstance(part, BaseModel) else None
    return (None, None) if field is None else (field.annotation, Slot.of(field.metadata))


def literals(annotation: Any) -> tuple[Any, ...]:
    if typing.get_origin(annotation) is typing.Literal:
        return get_args(annotation)
    return tuple(choice for inner in get_args(annotation) for choice in literals(inner))


def changed(path: str, value: object) -> Scenario | None:
    """Return the scenario with another value of one field, if any is found that is allowed."""
    for other in others(path, value):
        beside: Mapping[str, Any] = {"learning.local.momentum": 0.0} if other == "adam" else {}
        try:
            found = SCENARIO.replace({path: other, **beside})
        except (ScenarioError, TypeError):
            continue
        if found != SCENARIO:
            return found
    return None


def test_digests_move_with_what_changes_a_result_and_with_nothing_else() -> None:
    expected, unknown, wrong, tried = digests(SCENARIO), [], {}, 0
    assert digests(SCENARIO) == expected
    for path, value in fields(SCENARIO):
        if isinstance(value, BaseModel | Recipe) and path not in MOVES:
            continue
        right = MOVES.get(path)
        if right is None:
            if path not in NOTHING and not path.startswith(UNTOUCHED):
                unknown.append(path)
                continue
            right = set()
        if (scenario := changed(path, value)) is None:
            if path in MOVES or path in NOTHING:
                unknown.append(path)
            continue
        tried += 1
        found = digests(scenario)
        if (moved := {name for name in ALL if found[name] != expected[name]}) != right:
            wrong[path] = moved
    assert (unknown, wrong) == ([], {}), "fields without an entry or without another value, and wrong moves"
    assert tried >= 40, "most fields have been changed"


@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")
@pytest.mark.parametrize("registry", [MODELS, SERVER_OPTIMIZERS, MECHANISMS])
def test_every_option_of_a_part_that_computes_is_in_its_identity(registry: Any) -> None:
    for kind in registry.builtin:
        names = registry.load(kind).model_fields
        part = registry.load(kind).model_construct(**dict.fromkeys(names, 1.0))
        for name in names:
            one, other = (identity(part.model_copy(update={name: value})) for value in (1.25, 2.5))
            assert one != other, f"{kind}.{name}"


def test_the_executor_counts_where_its_bits_differ_and_workers_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    class Otherwise(SequentialExecutor):
        fingerprint = "otherwise"

    expected = digests(SCENARIO)
    found = digests(SCENARIO, executor=ExecutorChoice(Otherwise))
    assert all(found[name] != expected[name] for name in ALL)
    monkeypatch.setenv("FEDSIM_WORKERS", "1")
    assert digests(SCENARIO, executor=ExecutorChoice("processes")) == expected


@pytest.mark.parametrize("what", ["fedsim.learning.lineage.computation.ARITHMETIC", "torch.__version__"])
def test_versions_that_compute_count(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = digests(SCENARIO)
    monkeypatch.setattr(what, "another")
    found = digests(SCENARIO)
    assert all(found[name] != expected[name] for name in ALL)


def test_local_training_has_an_entry_for_each_of_its_fields() -> None:
    assert {f"learning.local.{name}" for name in LocalTraining.model_fields} <= MOVES.keys()
