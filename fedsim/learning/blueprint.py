"""What a run must know of its model and its executor before anything is computed.

To build both imports torch, which takes longer than a run whose results are all in the store. So their description lies
in a store on disk, and they are built with the first training or evaluation that is not in the store; the description
is compared then.
"""

import importlib.util
import json
import os
import platform
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import cache
from hashlib import blake2b
from pathlib import Path
from threading import Lock
from typing import Final

import numpy as np

from fedsim.answers.opened_files import opened_files
from fedsim.arrays import IntArray
from fedsim.errors import FedsimError
from fedsim.identity import identity
from fedsim.learning.algorithms.contracts import ALGORITHM
from fedsim.learning.evaluation import Evaluation
from fedsim.learning.executors.choice import AUTO, EXECUTORS, ExecutorChoice
from fedsim.learning.executors.contracts import EvaluationJob, Executor, TrainingJob, TrainingResult, TrainingSetup
from fedsim.learning.generators import own_generators
from fedsim.learning.lineage.asked import digest_of
from fedsim.learning.lineage.behaviour import OF_FEDSIM, Behaviour, behaviour_of_training, trains_by_own_code
from fedsim.learning.models.layout import Entry, ModelLayout, NarrowModel
from fedsim.learning.models.settings import own_name
from fedsim.learning.sizes import ExecutorUsed
from fedsim.learning.store.contracts import Arrays, Store

_COMPUTING: Final = "learning", "privacy"
"""Rooms of fedsim that a result depends on beside what it is asked of, and its streams."""
_OF_KERNELS: Final = (
    *("ATEN_CPU_CAPABILITY", "CUBLAS_WORKSPACE_CONFIG", "DNNL_MAX_CPU_ISA", "MKL_CBWR", "MKL_ENABLE_INSTRUCTIONS"),
    *("NVIDIA_TF32_OVERRIDE", "ONEDNN_MAX_CPU_ISA"),
)
"""Environment variables by which libraries choose kernels, whose bits differ."""
_VARIABLES: Final = (*_OF_KERNELS, "FEDSIM_WORKERS")
"""Environment variables that bits of a result, or the choice of an executor, may depend on."""
_FEATURES: Final = ("model name", "flags", "Features")
_ARRAYS: Final = "initial", "exempt"
_CONSTANT: Final = "constant."


@dataclass(frozen=True)
class Blueprint:
    layout: ModelLayout
    numerics: str
    used: ExecutorUsed
    max_batch: int
    narrow: tuple[NarrowModel, ...]
    behaviour: Behaviour = OF_FEDSIM

    def to_arrays(self) -> Arrays:
        facts = asdict(self)
        del facts["behaviour"]  # fedsim's own
        arrays = {name: np.asarray(facts["layout"].pop(name)) for name in _ARRAYS}
        constants = {_CONSTANT + name: values for name, values in facts["layout"].pop("constants").items()}
        return {"facts": np.frombuffer(json.dumps(facts).encode(), dtype=np.uint8), **arrays, **constants}

    @classmethod
    def from_arrays(cls, arrays: Arrays) -> "Blueprint":
        facts = json.loads(arrays["facts"].tobytes())
        constants = {name.removeprefix(_CONSTANT): one for name, one in arrays.items() if name.startswith(_CONSTANT)}
        of_layout = facts["layout"] | {name: arrays[name] for name in _ARRAYS} | {"constants": constants}
        of_layout["entries"] = tuple(Entry(**{**one, "shape": tuple(one["shape"])}) for one in of_layout["entries"])
        layout = ModelLayout(**{**of_layout, "executed": tuple(of_layout["executed"])})
        narrow = tuple(NarrowModel(**{**one, "shapes": tuple(map(tuple, one["shapes"]))}) for one in facts["narrow"])
        return cls(layout, facts["numerics"], ExecutorUsed.from_json(facts["used"]), facts["max_batch"], narrow)


class DeferredExecutor:
    """An executor that is built with its first job, so that a run that finds all results imports no torch."""

    def __init__(self, fingerprint: str, max_batch: int, build: Callable[[], Executor]) -> None:
        self.fingerprint, self.max_batch, self._build = fingerprint, max_batch, build
        self._executor: Executor | None = None
        self._lock = Lock()  # the first evaluation may come from another thread than the first training

    def train(self, jobs: Sequence[TrainingJob]) -> Iterable[TrainingResult]:
        return self._built().train(jobs)

    def evaluate(self, jobs: Sequence[EvaluationJob]) -> Sequence[Evaluation]:
        return self._built().evaluate(jobs)

    def _built(self) -> Executor:
        with self._lock:
            if self._executor is None:
                self._executor = self._build()
            return self._executor


def prepare(
    setup: TrainingSetup, choice: ExecutorChoice, samples: IntArray, store: Store
) -> tuple[Blueprint, Executor]:
    """Return the description of a run's model and executor, and the executor, which may be built later."""
    if not _of_fedsim(choice) or trains_by_own_code(setup):
        return _built(setup, choice, samples)
    digest = _digest(setup, choice, samples)
    kept = store.arrays(digest)
    if kept is None:
        found = _built(setup, choice, samples)
        store.put_arrays(digest, found[0].to_arrays())
        return found
    blueprint = Blueprint.from_arrays(kept)

    def build() -> Executor:
        again, executor = _built(
            setup, replace(choice, executor=blueprint.used.kind, device=blueprint.used.device), samples
        )
        if _words(again) != _words(blueprint):
            store.remove_arrays(digest)
            raise FedsimError(
                f"executor: {blueprint.used.kind!r} on this machine has changed while fedsim knew it "
                "from an earlier run; it has been forgotten, so that the same run works when it is started again"
            )
        return executor

    return blueprint, DeferredExecutor(blueprint.used.fingerprint, blueprint.max_batch, build)


def _built(setup: TrainingSetup, choice: ExecutorChoice, samples: IntArray) -> tuple[Blueprint, Executor]:
    from fedsim.learning.executors.trainer import one_thread
    from fedsim.learning.executors.trials import check_fit
    from fedsim.learning.models.flat_module import build_flat, numerics
    from fedsim.learning.models.narrowing import narrow_models

    with own_generators(0), opened_files() as opened:
        with one_thread(setup):
            check_fit(setup)
            layout = build_flat(setup.model, setup.data.shape, setup.outputs, setup.seed).layout
        executor, used = choice.prepare(setup, samples)
        behaviour = OF_FEDSIM
        if trains_by_own_code(setup):
            with one_thread(setup):
                behaviour = behaviour_of_training(setup, layout, opened)
    ratios = ALGORITHM.checked(setup.algorithm).ratios
    narrow = narrow_models(setup.model, layout, setup.data.shape, setup.outputs, setup.seed, ratios)
    kernels = "".join(f" {name}={os.environ[name]}" for name in _OF_KERNELS if os.environ.get(name))
    bits_of = f"fedsim {release()} {numerics()}{kernels}"
    return Blueprint(layout, bits_of, used, executor.max_batch, narrow, behaviour), executor


def _of_fedsim(choice: ExecutorChoice) -> bool:
    """Return whether `_digest` covers all that an executor's description depends on: one of fedsim's on the CPU."""
    return isinstance(choice.executor, str) and choice.executor in EXECUTORS.builtin and choice.device in ("cpu", AUTO)


def _words(blueprint: Blueprint) -> dict[str, bytes]:
    return {name: values.tobytes() for name, values in blueprint.to_arrays().items()}


def _digest(setup: TrainingSetup, choice: ExecutorChoice, samples: IntArray) -> str:
    return digest_of(
        "blueprint",
        *(release(), repr(_machine()), np.__version__, setup.amplified),
        *(
            identity(setup.model),
            identity(setup.local),
            identity(setup.algorithm),
            identity(setup.task),
            repr(setup.data.shape),
            setup.outputs,
            setup.seed,
        ),
        setup.data.digest if own_name(setup.model) is not None else "",
        *(choice.kind, choice.device, choice.precision, choice.fast, choice.cohort, choice.rounds),
        samples.tobytes(),
    )


@cache
def release() -> str:
    """Return a digest of the code that results depend on, so that releases and checkouts may share a store."""
    root, digest = Path(__file__).parents[1], blake2b(digest_size=16)
    folders = [folder for room in _COMPUTING for folder in os.walk(root / room)]  # in half the time of a glob
    places = [f"{folder}/{name}" for folder, _, names in folders for name in names if name.endswith(".py")]
    for place in sorted([*places, f"{root}/streams.py"]):
        digest.update(Path(place).read_bytes())
    return digest.hexdigest()


def _machine() -> dict[str, str]:
    """Return what the bits on this machine depend on, without importing torch."""
    known = {name: os.environ.get(name, "") for name in _VARIABLES}
    found = importlib.util.find_spec("torch")
    if found is not None and found.origin is not None:
        known["torch"] = digest_of((Path(found.origin).parent / "version.py").read_bytes())
    known["gpu"] = str(Path("/dev/nvidiactl").exists())
    known["machine"] = f"{platform.machine()} {os.cpu_count()}"
    with suppress(OSError), Path("/proc/cpuinfo").open(encoding="utf-8") as lines:
        for line in lines:
            name, _, value = line.partition(":")
            if not name.strip():
                break
            if name.strip() in _FEATURES:
                known[name.strip()] = value.strip()
    return known
