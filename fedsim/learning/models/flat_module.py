"""A module whose numbers all lie in one flat vector, so that a model is loaded by one copy."""

import copy
import platform
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeVar
from weakref import WeakValueDictionary

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from fedsim.arrays import Vector, read_only
from fedsim.errors import PartError
from fedsim.learning.data.shapes import Shape
from fedsim.learning.generators import own_generators, torch_generator
from fedsim.learning.models.inputs import blank
from fedsim.learning.models.layout import Entry, ModelLayout
from fedsim.learning.models.own.trial import check_scores
from fedsim.learning.models.settings import ModelPart, Trains, chosen, own_name

Number = TypeVar("Number", bound=np.floating[Any])

_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.SyncBatchNorm)
_DROPOUTS = (nn.Dropout, nn.AlphaDropout)
_COUNTER = "num_batches_tracked"
_GIVEN: WeakValueDictionary[int, nn.Module] = WeakValueDictionary()
"""Modules that models have built, by their ids; one that is built twice would be trained in two places."""


class FlatModule:
    """A module laid out in one float32 vector: its trained parameters first, then its statistics.

    Trained parameters want a gradient. They, their gradients and the statistics become views of flat tensors; a step of
    an optimiser on `parameters` is a step of the module. Statistics are the persistent floating-point buffers (running
    means and variances), batch normalisation's counters, which float32 counts exactly up to 2**24 batches, and buffers
    that ``changing`` names, which keep their type. All other numbers, parameters without a gradient among them, are
    constants of the module and stay in it.

    With ``channels_last`` the weights of a convolution lie in the flat vector with the channels last, as torch wants
    them on a CPU; `load`, `numbers`, `inward` and `outward` translate. Otherwise every tensor lies in its own order,
    which is also that of the layout.
    """

    def __init__(
        self,
        module: nn.Module,
        *,
        channels_last: bool = False,
        executed: tuple[str, ...] = (),
        changing: Collection[str] = (),
        device: torch.device | None = None,
    ) -> None:
        self.module = module
        dtypes = {name: one.dtype for name, one in module.state_dict().items() if isinstance(one, Tensor)}
        parameters = [(name, one) for name, one in module.named_parameters() if one.requires_grad]
        buffers = list(_changing_buffers(module, changing))
        self.buffers = tuple(name for name, _ in buffers)
        sizes = [tensor.numel() for _, tensor in (*parameters, *buffers)]
        count = sum(sizes[: len(parameters)])
        self.vector = torch.empty(sum(sizes), dtype=torch.float32, device=device)
        # Numbers come and go through memory of this process; on a CPU these are the vector itself.
        self._host = self.vector if self.vector.device.type == "cpu" else torch.empty_like(self.vector, device="cpu")
        self._numbers = self._host.numpy()
        self.parameters = nn.Parameter(self.vector[:count])
        self.gradient = torch.zeros(count, device=device)
        self.parameters.grad = self.gradient
        # A weight that two layers share is in the list once, under its first name.
        images = {id(part.weight) for part in module.modules() if type(part) is nn.Conv2d} if channels_last else ()
        ends = np.cumsum([0, *sizes])
        self._turned = [
            (slice(int(start), int(stop)), parameter.shape)
            for (_, parameter), start, stop in zip(parameters, ends, ends[1:], strict=False)
            if id(parameter) in images
        ]
        self._buffers: list[tuple[dict[str, Tensor | None], str, Tensor, Tensor]] = []
        self._trained: list[tuple[nn.Parameter, Tensor, Tensor, slice]] = []
        self._versions = [0] * len(parameters)
        self._move(parameters, buffers, sizes)
        if channels_last:
            _turn_constants(module)
        norms = [(name, layer) for name, layer in module.named_modules() if isinstance(layer, _NORMS)]
        prefixes = tuple(f"{name}." if name else "" for name, _ in norms)
        normed = [bool(norms) and name.startswith(prefixes) for name, _ in (*parameters, *buffers)]
        self.layout = ModelLayout(
            initial=read_only(self.numbers()),
            parameters=count,
            exempt=np.repeat(normed, sizes) | (np.arange(sum(sizes)) >= count),
            smallest_batch=2 if norms else 1,
            executed=executed,
            **self._places(dtypes),
        )

    def load(self, vector: Vector) -> None:
        np.copyto(self._numbers, vector)
        for place, shape in self._turned:
            _last(self._numbers[place], shape)[...] = vector[place].reshape(shape)
        if self._host is not self.vector:
            self.vector.copy_(self._host)
        for _, _, tensor, piece in self.typed:
            tensor.copy_(piece if tensor.is_floating_point() else piece.round())

    @property
    def typed(self) -> list[tuple[dict[str, Tensor | None], str, Tensor, Tensor]]:
        """Buffers that have another type than the vector: their owner's, their name, their tensor, their place."""
        return [one for one in self._buffers if one[2] is not one[3]]

    def gather(self) -> None:
        """Bring buffers back into the vector that a pass has replaced, or that have a type of their own."""
        for owner, name, tensor, piece in self._buffers:
            found = owner.get(name)
            if found is not tensor or tensor is not piece:
                if found is None or found.shape != tensor.shape:
                    raise ValueError(f"a pass gave the buffer {name!r} another shape")
                piece.copy_(found.detach())
                owner[name] = tensor

    def settle(self) -> list[slice]:
        """Bring numbers and gradients of parameters back into the flat tensors that a pass has put elsewhere.

        Return the places of parameters that have got no gradient since the last call.
        """
        missing = []
        for number, (parameter, own, slope, place) in enumerate(self._trained):
            if parameter.data_ptr() != own.data_ptr():
                if parameter.shape != own.shape:
                    raise ValueError(f"a pass gave a parameter of shape {tuple(own.shape)} another shape")
                own.copy_(parameter.data)
                parameter.data = own
            if parameter.grad is not slope:
                if parameter.grad is not None:
                    slope.copy_(parameter.grad)
                parameter.grad = slope
            if slope._version == self._versions[number]:
                missing.append(place)
            self._versions[number] = slope._version
        return missing

    def is_constant(self, array: Tensor) -> bool:
        """Return whether an array of the module is part of no update: a frozen parameter, or a constant buffer."""
        if isinstance(array, nn.Parameter):
            return not array.requires_grad
        return all(array is not tensor for _, _, tensor, _ in self._buffers)

    def numbers(self) -> Vector:
        """Return a copy of all numbers of the model, shape (d,)."""
        if self._host is not self.vector:
            self._host.copy_(self.vector)
        return self.outward(self._numbers)

    def inward(self, numbers: Vector) -> Vector:
        """Return a copy of the first n numbers of a model in the order of `vector`."""
        found = numbers.copy()
        for place, shape in self._turned:
            _last(found[place], shape)[...] = numbers[place].reshape(shape)
        return found

    def outward(self, numbers: NDArray[Number]) -> NDArray[Number]:
        """Return a copy of the first n coordinates of `vector` in the order of a model."""
        found = numbers.copy()
        for place, shape in self._turned:
            found[place].reshape(shape)[...] = _last(numbers[place], shape)
        return found

    def _places(self, dtypes: Mapping[str, torch.dtype]) -> dict[str, Any]:
        """Return the `ModelLayout.entries` and the constants of a module that has been moved."""
        first, bytes_each = self.vector.data_ptr(), self.vector.element_size()
        entries, constants = [], {}
        places = {tensor.data_ptr(): piece for _, _, tensor, piece in self.typed}
        # By their names, since a state may consist of copies.
        parameters = dict(self.module.named_parameters(remove_duplicate=False))
        own = parameters | dict(self.module.named_buffers(remove_duplicate=False))
        for name, stated in self.module.state_dict().items():
            if not isinstance(stated, Tensor):  # what a layer of the user's keeps beside them
                continue
            array = own.get(name, stated)
            tensor = places.get(array.data_ptr(), array)
            offset = (tensor.data_ptr() - first) // bytes_each
            dtype = dtypes[name] if _name_of(dtypes[name]) in np.sctypeDict else torch.float32  # NumPy has no bfloat16
            if tensor.dtype == torch.float32 and tensor.numel() and 0 <= offset < self.vector.numel():
                entries.append(Entry(name, offset, tuple(tensor.shape), _name_of(dtype)))
            else:
                constants[name] = tensor.detach().cpu().to(dtype).numpy().copy()
        return {"entries": tuple(entries), "constants": constants}

    def _move(
        self, parameters: list[tuple[str, nn.Parameter]], buffers: list[tuple[str, Tensor]], sizes: list[int]
    ) -> None:
        pieces = torch.split(self.vector, sizes)
        slopes = torch.split(self.gradient, sizes[: len(parameters)])
        holders = defaultdict[int, list[tuple[str, str]]](list)  # of a buffer that layers share, each of them
        for name, buffer in self.module.named_buffers(remove_duplicate=False):
            owner, _, last = name.rpartition(".")
            holders[id(buffer)].append((owner, last))
        with torch.no_grad():
            turned = {place.start for place, _ in self._turned}
            for (_, parameter), piece, slope in zip(parameters, pieces, slopes, strict=False):
                start = piece.storage_offset()
                own, down = (_shaped(part, parameter.shape, last=start in turned) for part in (piece, slope))
                own.copy_(parameter)
                parameter.data, parameter.grad = own, down.data  # with a version counter of its own
                self._trained.append((parameter, own, parameter.grad, slice(start, start + piece.numel())))
            for (name, buffer), piece in zip(buffers, pieces[len(parameters) :], strict=True):
                piece.copy_(buffer.reshape(-1))
                last = name.rpartition(".")[2]
                # `.data` gives each buffer a version counter of its own: layers that update theirs in the same
                # forward pass would otherwise look to autograd as if they overwrote one another's.
                view = piece.view(buffer.shape).data
                whole = not buffer.is_floating_point() and last != _COUNTER
                moved = buffer.clone() if whole else view
                holding = [(self.module.get_submodule(owner)._buffers, last) for owner, last in holders[id(buffer)]]
                for inside, last in holding:
                    inside[last] = moved
                self._buffers.append((*holding[0], moved, view))


def build_flat(
    model: ModelPart,
    shape: Shape,
    classes: int,
    seed: int,
    *,
    channels_last: bool = False,
    device: torch.device | None = None,
) -> FlatModule:
    """Return a fresh model with the initial weights of a seed, which torch draws by its default rules."""
    name = own_name(model)
    with torch_generator(seed) if name is None else own_generators(seed):
        module = built(model, shape, classes)
        executed = () if name is None else check_scores(module, name, shape, classes)
        for part in module.modules():
            if isinstance(part, _DROPOUTS):
                part.register_forward_pre_hook(_in_their_order)
        changing = _changed(module, shape) if name is not None else ()
        module = module.to(device)
        return FlatModule(module, channels_last=channels_last, executed=executed, changing=changing, device=device)


def built(model: ModelPart, shape: Shape, classes: int) -> nn.Module:
    module = model.build(shape, classes)
    if _GIVEN.get(id(module)) is module:
        fault = f"model {own_name(model) or type(model).__name__} gave the same module as before"
        raise PartError(fault, "allowed: a fresh one at each call, or the module itself as learning.model")
    _GIVEN[id(module)] = module
    return chosen(module, model.train) if isinstance(model, Trains) else module


def _changed(module: nn.Module, shape: Shape) -> set[str]:
    """Return the buffers that two passes in training mode change, of those whose kind does not say so."""
    persistent = {name for name, _ in _changing_buffers(module)}
    if all(name in persistent for name, _ in module.named_buffers()):
        return set()
    tried, samples = copy.deepcopy(module).train(), blank(shape).repeat_interleave(2, 0)
    samples = torch.randn(samples.shape) if samples.is_floating_point() else samples
    with torch.no_grad(), suppress(Exception):  # the first training says what fails
        for _ in range(2):
            tried(samples)
    after = dict(tried.named_buffers())
    return {name for name, one in module.named_buffers() if name in after and not torch.equal(one, after[name])}


def _in_their_order(_: nn.Module, given: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """Make the inputs contiguous, since torch draws in the order of the memory."""
    return tuple(one.contiguous() for one in given)


def _changing_buffers(module: nn.Module, also: Collection[str] = ()) -> Iterator[tuple[str, Tensor]]:
    persistent = module.state_dict().keys()
    for name, buffer in module.named_buffers():
        counts = buffer.is_floating_point() or name.rpartition(".")[2] == _COUNTER
        if (name in persistent and counts) or name in also:
            yield name, buffer


def _name_of(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def _turn_constants(module: nn.Module) -> None:
    """Lay the weights of convolutions that are not trained with their channels last too."""
    for part in module.modules():
        if type(part) is nn.Conv2d and not part.weight.requires_grad:
            part.weight.data = part.weight.data.contiguous(memory_format=torch.channels_last)


def _last(numbers: NDArray[Number], shape: Sequence[int]) -> NDArray[Number]:
    """Return a weight of shape (out, in, height, width) that lies in memory with its channels last."""
    out, channels, height, width = shape
    return numbers.reshape(out, height, width, channels).transpose(0, 3, 1, 2)


def _shaped(numbers: Tensor, shape: torch.Size, *, last: bool) -> Tensor:
    """Return a view of flat numbers as a tensor, for a weight of a convolution with its channels last."""
    if not last:
        return numbers.view(shape)
    out, channels, height, width = shape
    return numbers.view(out, height, width, channels).permute(0, 3, 1, 2)


def numerics() -> str:
    """Return what bits depend on beside fedsim: the libraries that compute, and the abilities of the processor."""
    capability = torch.backends.cpu.get_cpu_capability()
    return f"torch {torch.__version__} numpy {np.__version__} {platform.machine()} {capability}"
