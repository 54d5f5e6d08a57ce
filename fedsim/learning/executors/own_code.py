"""A user's own code in a training: what it changed before is put back or refused, and its failures name it.

A tree of fedsim's and torch's own layers without hooks has no state but its numbers and torch's generator; it needs no
sandbox.
"""

import copy
import types
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final

import torch
from torch import Tensor, nn

from fedsim.answers import FAILURES, attributed, failed
from fedsim.code_digest import is_builtin
from fedsim.errors import FedsimError, PartError
from fedsim.learning.algorithms.contracts import ALGORITHM
from fedsim.learning.executors.contracts import StateError, TrainingSetup
from fedsim.learning.models.flat_module import FlatModule
from fedsim.learning.models.own.trial import content_of, is_own_layer
from fedsim.learning.models.settings import own_name
from fedsim.learning.tasks.contracts import TASK

_OF_TORCH: Final = frozenset(nn.Module().__dict__)
_FUNCTIONS: Final = (type, types.FunctionType)
_CONSTANT: Final = (int, float, bool, str, bytes, complex, type(None), torch.dtype, torch.device, *_FUNCTIONS)


class Sandbox:
    """State of one module outside its flat vector, as it was when the module was built."""

    def __init__(self, flat: FlatModule, name: str) -> None:
        self._flat, self._name = flat, name
        parts = [(f"{path}." if path else "", part) for path, part in flat.module.named_modules()]
        self._tables = [
            (where, part, own, dict(own))
            for where, part in parts
            for own in (part._parameters, part._buffers, part._modules)
        ]
        self._arrays = [
            (where + name, own, name, array, array._version if flat.is_constant(array) else None)
            for where, _, own, before in self._tables
            for name, array in before.items()
            if isinstance(array, Tensor)
        ]
        self._wanted = [(name, one, one.requires_grad) for name, one in flat.module.named_parameters()]
        self._attributes = [(where, vars(part), set(vars(part))) for where, part in parts]
        self._constant, changeable = list[dict[str, Any]](), list[dict[str, Any]]()
        for _, own, names in self._attributes:
            values = {name: own[name] for name in sorted(names - _OF_TORCH)}
            self._constant.append({name: value for name, value in values.items() if _is_constant(value)})
            rest = {name: value for name, value in values.items() if name not in self._constant[-1]}
            changeable.append({name: one for name, one in rest.items() if _copies([one], self._inner()) is not None})
        self._before = _copies(changeable, self._inner()) or [{} for _ in parts]
        self._noted: list[tuple[str, Any]] | None = None

    def __enter__(self) -> None:
        """Let a training or a pass begin."""

    def __exit__(self, kind: object, *_: object) -> None:
        """Put all back; refuse what has changed and belongs to no update."""
        try:
            self._flat.settle()
            self._flat.gather()
            if kind is None:
                for fault, allowed in self._faults():
                    raise StateError(f"model {self._name}: a pass {fault}", f"allowed: {allowed}")
                if self._noted is not None:
                    self._noted += self._changed()
        finally:
            self._put_back()

    def _faults(self) -> Iterator[tuple[str, str]]:
        """Yield what passes have done that no update has, and what they may do."""
        for name, own, last, array, version in self._arrays:
            if (version is not None and array._version != version) or own.get(last) is not array:
                allowed = "parameters that are trained, and buffers that a pass in training mode changes"
                yield f"changes {name}, which is no part of an update", allowed
        known = {id(array) for _, _, _, array, _ in self._arrays}
        for name, parameter in self._flat.module.named_parameters():
            if id(parameter) not in known:
                yield f"makes {name}, which is not trained", "layers that are made with the model"
        for name, part in self._made():
            if name.rpartition(".")[2] not in part._non_persistent_buffers_set:
                yield f"makes the buffer {name}, which is no part of an update", "buffers that are made with the model"
        for name, parameter, wanted in self._wanted:
            if parameter.requires_grad != wanted:
                yield f"changes whether {name} is trained", "what is trained from the first batch on"
        yield from self._of_layers()

    def _of_layers(self) -> Iterator[tuple[str, str]]:
        for where, part, own, layers in self._tables:
            if own is part._modules and own != layers:
                changed = next(name for name in {**own, **layers} if own.get(name) is not layers.get(name))
                yield f"puts another layer in the place of {where}{changed}", "layers that are made with the model"

    def _made(self) -> Iterator[tuple[str, nn.Module]]:
        """Yield buffers that passes have made, with their layers."""
        for where, part, own, before in self._tables:
            if own is part._buffers:
                made = (name for name, array in own.items() if array is not None and before.get(name) is None)
                yield from ((where + name, part) for name in made)

    @contextmanager
    def noting(self) -> Iterator[list[tuple[str, Any]]]:
        """Note attributes that passes change meanwhile, and their values; they are put back as ever."""
        noted = self._noted = list[tuple[str, Any]]()
        try:
            yield noted
        finally:
            self._noted = None

    def _changed(self) -> Iterator[tuple[str, Any]]:
        """Yield attributes that differ from those of the module as it was built, and their values."""
        for (where, own, names), constant, before in zip(self._attributes, self._constant, self._before, strict=True):
            yield from ((where + name, own.get(name)) for name in sorted(own.keys() ^ names))
            for name, value in {**constant, **before}.items():
                if own.get(name) is not value and content_of(own.get(name)) != content_of(value):
                    yield where + name, own.get(name)
        yield from ((name, None) for name, _ in self._made())

    def _put_back(self) -> None:
        for _, parameter, wanted in self._wanted:
            parameter.requires_grad_(wanted)
        for _, _, own, before in self._tables:
            own.clear()
            own.update(before)
        copies = _copies(self._before, self._inner()) or [{} for _ in self._attributes]
        for (_, own, names), constant, before in zip(self._attributes, self._constant, copies, strict=True):
            for name in own.keys() - names if own.keys() != names else ():
                del own[name]
            own.update(constant)
            own.update(before)

    def _inner(self) -> dict[int, Any]:
        """Return what is not copied: layers and arrays of the module itself."""
        inner = [*self._flat.module.modules(), *(array for _, _, _, array, _ in self._arrays)]
        return {id(one): one for one in inner}


def sandbox_of(setup: TrainingSetup, flat: FlatModule) -> Sandbox | None:
    """Return the sandbox of a module; none where no code of a user's takes part."""
    parts = (setup.task, setup.algorithm, *setup.task.metrics)
    if all(is_builtin(type(one)) for one in parts) and not any(map(is_own_layer, flat.module.modules())):
        return None
    return Sandbox(flat, own_name(setup.model) or type(setup.model).__name__)


def _is_constant(value: Any) -> bool:
    return isinstance(value, _CONSTANT) or (type(value) is tuple and all(map(_is_constant, value)))


def _copies(values: list[Any], memo: dict[int, Any]) -> list[Any] | None:
    """Return copies of values, which share what the values share; None if one cannot be copied."""
    with suppress(Exception):  # a lock, an open file
        return copy.deepcopy(values, memo)
    return None


@contextmanager
def named_faults(setup: TrainingSetup, place: int | None = None) -> Iterator[None]:
    """Raise a failure in here as the error about the user's part.

    Where no frame of the traceback is that of such a part, as with layers of torch in a row, it is the model's if that
    is the user's, or else that of the task's losses or of the algorithm's loss.
    """
    try:
        yield
    except PartError as fault:
        fault.at = place if fault.at is None else fault.at
        raise
    except FedsimError:
        raise
    except FAILURES as failure:
        known = attributed(failure)
        if known is None and (asked := _own_member(setup)) is not None:
            known = failed(*asked, failure)
        if known is None:
            raise
        known.at = place
        raise known from failure


def _own_member(setup: TrainingSetup) -> tuple[str, str] | None:
    """Return the first of the user's own parts that the numbers of a batch come from, and its member."""
    if (name := own_name(setup.model)) is not None:
        return f"model {name}", "forward"
    if not is_builtin(type(setup.task)):
        return TASK.name_of(setup.task), "losses"
    if setup.algorithm.has_loss and not is_builtin(type(setup.algorithm)):
        return ALGORITHM.name_of(setup.algorithm), "loss"
    return None
