"""Contracts with kinds of answers of their own take or refuse a fixed list of them as yesterday, in the same words."""

import importlib
import math
import pkgutil
from types import SimpleNamespace

import numpy as np
import pytest

import fedsim
from fedsim.answers import AnswerError, Contract
from fedsim.devices import Always
from fedsim.rounds.aggregation.rules import Aggregated
from fedsim.rounds.policies.contracts import ServerTraits
from tests.support.frozen_answers import check_frozen

ROOMS = ("fedsim.rounds", "fedsim.network.medium", "fedsim.devices", "fedsim.privacy", "fedsim.selectors")
MODULES = [
    importlib.import_module(found.name)
    for found in pkgutil.walk_packages(fedsim.__path__, "fedsim.")
    if found.name.startswith(ROOMS)
]
KINDS = {
    f"{value.noun}.{name}": kind
    for module in MODULES
    for value in vars(module).values()
    if isinstance(value, Contract)
    for name, kind in value.members.items()
    if type(kind).__module__.startswith(ROOMS)
}
JOB = SimpleNamespace(bits=8.0, work=2.0)
TWO, THREE = np.ones(2), np.arange(3)
GIVEN = {
    "status": SimpleNamespace(fresh=TWO),
    "arrivals": SimpleNamespace(client=THREE),
    "job": JOB,
    "policy": "policy X",
    "time_s": 1.0,
}
NUMBERS = (True, 0, 1, -1, 2**40, 0.5, 1.5, -0.5, math.nan, math.inf, -math.inf, np.float32(0.5), -1e-12, 1e301)
COLUMNS = [
    *(np.full(3, value) for value in (0.0, 0.5, 1.0, -0.5, 2.0, math.nan, math.inf, 1e301, -1e301)),
    *(np.ones(3, dtype=kind) for kind in (np.int64, np.bool_, np.float32, np.uint8, "U1")),
    *(np.zeros(shape) for shape in (0, 2, 4, (3, 2), (2, 3))),
    *(np.array([2, 0, 1]), np.array([0, 0, 1]), np.array([1, 1, 1]), np.array([0, 3, 1]), np.array([0, -1, 1])),
]
PAIRS = [
    *((), (1.0,), (1.0, 1), [2.0, 3], (0.5, 1), (1.0, 0), (math.inf, 2), (math.nan, 2), (1.0, 1.5), (1.0, 2, 3)),
    *((0.5, np.array([0.25, 0.25])), (0.5, TWO), (1.0, np.zeros(2)), (0.0, np.array([1.0, 0.0, 0.0])), (2.0, TWO)),
    *((-0.5, np.array([1.5, 0.0])), (0.5, np.array([0.5, 1e-10])), (0.5, np.array([0.5, 1e-8])), (-1e-10, JOB)),
    *((-1e-8, JOB), (-2.5e-9, JOB), (1.0, JOB), (1.0, "job"), (-1e-10, "job"), ("1", JOB), {"a": 1}),
]
WHOLE = Aggregated("model", np.array([0.5, math.nan, 0.5]), np.zeros(3, dtype=bool))
MADE = [
    *(None, "x", "timed", "per-draw", frozenset(), {"a"}, Always(), WHOLE),
    Aggregated("model", np.full(3, math.inf), WHOLE.held),
    Aggregated("model", np.full(3, 1e301), WHOLE.held),
    Aggregated("model", np.full(3, -1e301), WHOLE.held),
    Aggregated("model", np.ones(2), WHOLE.held),
    Aggregated("model", WHOLE.weight, np.ones(3)),
    *(ServerTraits(**{name: value}) for name in ("cohort_size", "concurrency", "buffer_size") for value in (0, 1, 1.5)),
    *(ServerTraits(give_up_after_s=value) for value in (0.0, -1.0, 2.0, math.nan, math.inf)),
    *(ServerTraits(remembered_rounds=value) for value in (-1, 0, 0.5)),
    *(ServerTraits(overlaps_rounds=1), ServerTraits(tolerates_losses="no"), ServerTraits(provides={"a"})),
]
ANSWERS = [*MADE, *NUMBERS, *COLUMNS, *PAIRS]


@pytest.mark.parametrize("member", sorted(KINDS))
def test_a_contract_takes_and_refuses_as_before(member):
    found = []
    for answer in ANSWERS:
        try:
            taken = KINDS[member](answer, GIVEN)
            found.append(["taken", type(taken).__name__, str(getattr(taken, "dtype", ""))])
        except AnswerError as error:
            found.append(f"{error.found}: {error.allowed}")
    check_frozen("refusals", member, found)
