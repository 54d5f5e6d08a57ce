"""One training step of all slots at once, as a flat list of torch's operations.

torch.func maps the module's forward and backward pass over the slots. That is traced once for each batch size; a step
then costs torch's operations only, without the module's Python code, autograd and vmap.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, cast

import torch
from torch import Tensor, fx
from torch.func import functional_call, vjp, vmap
from torch.fx.experimental.proxy_tensor import make_fx
from torch.nn import functional

from fedsim.errors import FedsimError
from fedsim.learning.executors.objective import Objective
from fedsim.learning.executors.stacked import passes
from fedsim.learning.executors.stacked.draws import SlotDraws, draws_at_random
from fedsim.learning.executors.stacked.replay import Run, recorded
from fedsim.learning.models.flat_module import FlatModule

Compile = Callable[[fx.GraphModule, Sequence[Tensor]], Run]
"""Compiles a list of operations for arrays like those given."""


class ModuleOfSlots:
    def __init__(
        self,
        flat: FlatModule,
        slots: int,
        device: torch.device,
        autocast: torch.dtype | None,
        compile_step: Compile | None,
        objective: Objective,
    ) -> None:
        module, self._compile_step, self._objective = flat.module, compile_step, objective
        self.is_softmax, self.is_short = objective.is_softmax, objective.is_short
        self._module, self.slots, self._device, self._autocast = module, slots, device, autocast
        own = dict(module.named_buffers())
        trained = [(name, one) for name, one in module.named_parameters() if one.requires_grad]
        numbers = [*trained, *((name, own[name]) for name in flat.buffers)]
        self._names = [name for name, _ in numbers]
        self._shapes = [one.shape for _, one in numbers]
        self._sizes = [shape.numel() for shape in self._shapes]
        self._parameters = len(numbers) - len(flat.buffers)
        self.buffer_count = len(flat.buffers)
        self.count = flat.layout.parameters
        self.buffers = flat.vector.numel() - self.count
        own |= {name: one.data for name, one in module.named_parameters() if not one.requires_grad}
        self._constants = {name: one.to(device) for name, one in own.items() if name not in flat.buffers}

    def pieces(self, numbers: Tensor) -> list[Tensor]:
        """Return parameters and buffers of all slots, as views of an array of shape (slots, d)."""
        split = torch.split(numbers, self._sizes, dim=1)
        return [piece.view(self.slots, *shape) for piece, shape in zip(split, self._shapes, strict=True)]

    def outputs(self, numbers: Sequence[Tensor], images: Tensor) -> tuple[Tensor, list[Tensor]]:
        """Return the scores of the module of one slot, shape (n, classes), and its buffers afterwards."""
        buffers = [one.clone() for one in numbers[self._parameters :]]
        named = dict(zip(self._names, (*numbers[: self._parameters], *buffers), strict=True))
        with torch.autocast(self._device.type, self._autocast, self._autocast is not None, cache_enabled=False):
            scores = functional_call(self._module, {**self._constants, **named}, (images,))
        return scores.float(), buffers

    def step(
        self, pieces: Sequence[Tensor], images: Tensor, weights: Tensor, targets: Tensor, draws: SlotDraws
    ) -> tuple[Run, bool]:
        """Return a function that computes gradients for batches of these shapes, and whether it draws at random.

        The function takes these arrays in a row. It returns the gradient of shape (slots, p), the log-probabilities or
        the losses of the samples, and the buffers afterwards.
        """
        objective = self._objective

        def forward(
            parameters: Sequence[Tensor], buffers: Sequence[Tensor], images: Tensor
        ) -> tuple[Tensor, list[Tensor]]:
            return vmap(self.outputs, randomness="different")([*parameters, *buffers], images)

        def by_softmax(*given: Tensor) -> list[Tensor]:
            *pieces, images, weights, targets = given
            parameters, buffers = pieces[: self._parameters], pieces[self._parameters :]
            scores, pull, after = cast(Any, vjp(lambda own: forward(own, buffers, images), parameters, has_aux=True))
            # torch's log_softmax and its backward pass cost twice as much on rows of few classes.
            shifted = scores - scores.amax(2, keepdim=True)
            powers = shifted.exp()
            total = powers.sum(2, keepdim=True)
            found = shifted - total.log()
            (gradients,) = pull(powers * (weights / total) + targets)
            return [torch.cat([one.reshape(self.slots, -1) for one in gradients], dim=1), found, *after]

        def by_task(*given: Tensor) -> list[Tensor]:
            *pieces, images, weights, targets = given
            parameters, buffers = pieces[: self._parameters], pieces[self._parameters :]

            def losses(own: Sequence[Tensor]) -> tuple[Tensor, list[Tensor]]:
                scores, after = forward(own, buffers, images)
                return vmap(objective.losses)(scores, targets), after

            found, pull, after = cast(Any, vjp(losses, parameters, has_aux=True))
            (gradients,) = pull(weights)
            return [torch.cat([one.reshape(self.slots, -1) for one in gradients], dim=1), found, *after]

        compute = by_softmax if objective.is_softmax else by_task
        self._module.train()
        return trace(compute, pieces, (images, weights, targets), draws, self._compile_step)

    def scores(self, pieces: Sequence[Tensor], images: Tensor, targets: Tensor) -> Run:
        """Return a function of these arrays in a row that scores samples in evaluation mode.

        It gives log-probabilities of shape (slots, n, classes) if accuracy and cross-entropy suffice, else loss and
        sums of the metrics of each sample, shape (slots, n, m).
        """
        objective = self._objective

        def compute(*given: Tensor) -> list[Tensor]:
            *pieces, images, targets = given
            scores = vmap(lambda pieces, images: self.outputs(pieces, images)[0])(pieces, images)
            if objective.is_short:
                return [functional.log_softmax(scores, dim=2)]
            return [vmap(objective.sums)(scores, targets)]

        self._module.eval()
        return trace(compute, pieces, (images, targets), SlotDraws(images.device, self.slots))[0]

    def mixes_samples(self, images: Tensor) -> bool:
        """Return whether one of several images changes the scores of the others."""
        self._module.train()
        other = images.clone()
        # Tokens are whole numbers from 0 on; 0 and 1 are in every vocabulary.
        other[-1] = -other[-1] + 0.25 if other.is_floating_point() else (other[-1] == 0).long()
        with _draws_kept(self._device), torch.no_grad():
            torch.default_generator.manual_seed(0)
            numbers = self._drawn()
            found = [self.outputs(numbers, one)[0][:-1] for one in (images, other)]
        return not torch.equal(*found)

    def mixes_losses(self, images: Tensor, targets: Tensor) -> bool:
        """Return whether losses of some samples depend on the others; see `Objective.mixes_samples`."""
        self._module.train()
        with _draws_kept(self._device), torch.no_grad():
            torch.default_generator.manual_seed(0)
            return self._objective.mixes_samples(self.outputs(self._drawn(), images)[0], targets)

    def _drawn(self) -> list[Tensor]:
        """Return numbers of a model at random."""
        return [0.1 * torch.randn(shape).to(self._device) for shape in self._shapes]


def trace(
    compute: Callable[..., Any],
    lasting: Sequence[Tensor],
    example: Sequence[Tensor],
    draws: SlotDraws,
    compile_step: Compile | None = None,
) -> tuple[Run, bool]:
    """Return a function as a list of torch's operations, and whether it draws at random."""
    with _draws_kept(example[0].device):
        try:
            graph = make_fx(compute)(*lasting, *example)
        except (RuntimeError, TypeError, ValueError) as error:
            raise FedsimError(
                f"learning.model: torch cannot map this module over clients ({error}); allowed with the executor "
                "'stacked': modules (and a learning.task) without branches on values; any with 'sequential'"
            ) from error
    passes.without_needless(graph)
    passes.without_turns(graph)
    passes.without_needless(graph)
    drawing = [node for node in graph.graph.nodes if draws_at_random(node)]
    if drawing and compile_step:
        raise FedsimError(
            "learning.model: a module that draws random numbers (dropout) is not allowed with the executor "
            "'stacked-compiled'; allowed: the executor 'stacked'"
        )
    for node in drawing:
        node.target = draws.drawing(node.target)
    on_cpu = example[0].device.type == "cpu"
    if on_cpu:
        passes.aligned(graph)
    if compile_step:
        return compile_step(graph, (*lasting, *example)), False
    passes.called_directly(graph)
    graph.recompile()
    # A recording would repeat the same random numbers.
    alone = on_cpu or drawing
    return graph.forward if alone else recorded(graph.forward, lasting, example), bool(drawing)


def _draws_kept(device: torch.device) -> AbstractContextManager[None]:
    """Leave the states of torch's global generators as they are."""
    return torch.random.fork_rng(devices=[device] if device.type == "cuda" else [])
