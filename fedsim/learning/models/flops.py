"""How many floating-point operations a model costs, counted on its module."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry, shape_wrapper

from fedsim.learning.data.shapes import Shape
from fedsim.learning.generators import own_generators
from fedsim.learning.local_training import FORWARD_AND_BACKWARD
from fedsim.learning.models.flat_module import built
from fedsim.learning.models.inputs import blank
from fedsim.learning.models.settings import ModelPart
from fedsim.learning.torch_modes import own_modes


@own_modes()
@own_generators(0)
def training_flops(model: ModelPart, shape: Shape, classes: int) -> float:
    """Return the floating-point operations of one sample in training: `FORWARD_AND_BACKWARD` times those forward.

    Torch counts them while a blank sample passes through a fresh module: two for each multiply-add of a dense,
    convolutional or recurrent layer and of the two products of attention. The rest is not counted, as is usual: looking
    up the vector of a word costs nothing. Where parameters stay as they are, the pass backward is counted too, since it
    is shorter there.
    """
    module = built(model, shape, classes).eval()
    counter = _Counter()
    whole = all(one.requires_grad for one in module.parameters())
    # Without gradients torch has an operation for all of attention at once, which it does not count.
    with torch.enable_grad(), sdpa_kernel(SDPBackend.MATH), counter:
        scores = module(blank(shape))
        if not whole:
            scores.sum().backward()
    return float((FORWARD_AND_BACKWARD if whole else 1) * counter.total)


class _Counter(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Adds up torch's formulas, as its own counter does, which imports the compiler for a second."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.total = 0
        of_shapes: Any = shape_wrapper
        self._formulas = {
            **flop_registry,
            torch.ops.aten.mkldnn_rnn_layer: of_shapes(_lstm_flops),
            torch.ops.aten.mkldnn_rnn_layer_backward: of_shapes(lambda *of, **more: 2 * _lstm_flops(*of, **more)),
        }

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        given, formula = kwargs or {}, self._formulas.get(func._overloadpacket)
        if formula is None:
            with self:
                parts = func.decompose(*args, **given)
            if parts is not NotImplemented:
                return parts
        found = func(*args, **given)
        if formula is not None:
            self.total += formula(*args, **given, out_val=found)
        return found


def _lstm_flops(inputs: Sequence[int], of_input: Sequence[int], of_state: Sequence[int], *_: Any, **__: Any) -> int:
    """Return the operations of a layer of an LSTM on a CPU, which torch's counter does not know."""
    return 2 * inputs[0] * inputs[1] * of_state[0] * (of_input[1] + of_state[1])
