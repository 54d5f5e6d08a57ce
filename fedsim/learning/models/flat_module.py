"""A module whose numbers all lie in one flat vector, so that a model is loaded by one copy."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from fedsim.arrays import Vector
from fedsim.learning.data.shapes import Shape
from fedsim.learning.models.layout import Entry, ModelLayout
from fedsim.learning.models.own.trial import check_scores
from fedsim.learning.models.settings import ModelPart, own_name

Number = TypeVar("Number", bound=np.floating[Any])

_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.SyncBatchNorm)
_DROPOUTS = (nn.Dropout, nn.AlphaDropout)
_COUNTER = "num_batches_tracked"


class FlatModule:
    """A module laid out in one float32 vector: its trained parameters first, then its statistics.

    Trained parameters want a gradient. They, their gradients and the statistics become views of flat tensors; a step of
    an optimiser on `parameters` is a step of the module. Statistics are the persistent floating-point buffers (running
    means and variances) and batch normalisation's counters, which float32 counts exactly up to 2**24 batches. All other
    numbers, parameters without a gradient among them, are constants of the module and stay in it.

    With ``channels_last`` the weights of a convolution lie in the flat vector with the channels last, as torch wants
    them on a CPU; `load`, `numbers`, `inward` and `outward` translate. Otherwise every tensor lies in its own order,
    which is also that of the layout.
    """

    def __init__(self, module: nn.Module, *, channels_last: bool = False, executed: tuple[str, ...] = ()) -> None:
        self.module = module
        dtypes = {name: tensor.dtype for name, tensor in module.state_dict().items()}
        parameters = [(name, one) for name, one in module.named_parameters() if one.requires_grad]
        buffers = list(_changing_buffers(module))
        self.buffers = tuple(name for name, _ in buffers)
        sizes = [tensor.numel() for _, tensor in (*parameters, *buffers)]
        count = sum(sizes[: len(parameters)])
        self.vector = torch.empty(sum(sizes), dtype=torch.float32)
        self._numbers = self.vector.numpy()
        self.parameters = nn.Parameter(self.vector[:count])
        self.gradient = torch.zeros(count)
        self.parameters.grad = self.gradient
        # A weight that two layers share is in the list once, under its first name.
        images = {id(part.weight) for part in module.modules() if type(part) is nn.Conv2d} if channels_last else ()
        ends = np.cumsum([0, *sizes])
        self._turned = [
            (slice(int(start), int(stop)), parameter.shape)
            for (_, parameter), start, stop in zip(parameters, ends, ends[1:], strict=False)
            if id(parameter) in images
        ]
        self._move(parameters, buffers, sizes)
        if channels_last:
            _turn_constants(module)
        norms = [(name, layer) for name, layer in module.named_modules() if isinstance(layer, _NORMS)]
        prefixes = tuple(f"{name}." if name else "" for name, _ in norms)
        normed = [bool(norms) and name.startswith(prefixes) for name, _ in (*parameters, *buffers)]
        initial = self.numbers()
        initial.flags.writeable = False
        self.layout = ModelLayout(
            initial=initial,
            parameters=count,
            exempt=np.repeat(normed, sizes) | (np.arange(sum(sizes)) >= count),
            smallest_batch=2 if norms else 1,
            executed=executed,
            **self._places(dtypes),
        )

    def load(self, vector: Vector) -> None:
        """Take over all numbers of a model, shape (d,)."""
        np.copyto(self._numbers, vector)
        for place, shape in self._turned:
            _last(self._numbers[place], shape)[...] = vector[place].reshape(shape)

    def numbers(self) -> Vector:
        """Return a copy of all numbers of the model, shape (d,)."""
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
        for name, tensor in self.module.state_dict().items():
            offset = (tensor.data_ptr() - first) // bytes_each
            if tensor.dtype == torch.float32 and tensor.numel() and 0 <= offset < self.vector.numel():
                dtype = str(dtypes[name]).removeprefix("torch.")
                entries.append(Entry(name, offset, tuple(tensor.shape), dtype))
            else:
                constants[name] = tensor.to(dtypes[name]).numpy().copy()
        return {"entries": tuple(entries), "constants": constants}

    def _move(
        self, parameters: list[tuple[str, nn.Parameter]], buffers: list[tuple[str, Tensor]], sizes: list[int]
    ) -> None:
        pieces = torch.split(self.vector, sizes)
        slopes = torch.split(self.gradient, sizes[: len(parameters)])
        with torch.no_grad():
            turned = {place.start for place, _ in self._turned}
            for (_, parameter), piece, slope in zip(parameters, pieces, slopes, strict=False):
                start = piece.storage_offset()
                own, down = (_shaped(part, parameter.shape, last=start in turned) for part in (piece, slope))
                own.copy_(parameter)
                parameter.data, parameter.grad = own, down
            for (name, buffer), piece in zip(buffers, pieces[len(parameters) :], strict=True):
                piece.copy_(buffer.reshape(-1))
                owner, _, last = name.rpartition(".")
                # `.data` gives each buffer a version counter of its own: layers that update theirs in the same
                # forward pass would otherwise look to autograd as if they overwrote one another's.
                self.module.get_submodule(owner).register_buffer(last, piece.view(buffer.shape).data)


def build_flat(model: ModelPart, shape: Shape, classes: int, seed: int, *, channels_last: bool = False) -> FlatModule:
    """Return a fresh model with the initial weights of a seed, which torch draws by its default rules.

    A model of the user's own is tried on a blank sample. Draws of a dropout layer do not depend on the memory layout of
    its inputs.
    """
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        module = model.build(shape, classes)
        name = own_name(model)
        executed = () if name is None else check_scores(module, name, shape, classes)
        for part in module.modules():
            if isinstance(part, _DROPOUTS):
                part.register_forward_pre_hook(_in_their_order)
        return FlatModule(module, channels_last=channels_last, executed=executed)


def _in_their_order(_: nn.Module, given: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """Make the inputs contiguous, since torch draws in the order of the memory."""
    return tuple(one.contiguous() for one in given)


def _changing_buffers(module: nn.Module) -> Iterator[tuple[str, Tensor]]:
    persistent = module.state_dict().keys()
    for name, buffer in module.named_buffers():
        if name in persistent and (buffer.is_floating_point() or name.rpartition(".")[2] == _COUNTER):
            yield name, buffer


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
