"""One training step of all slots at once, as a flat list of torch's operations.

torch.func maps the module's forward pass over the slots; the gradients are ordinary autograd, since a slot's losses
depend on its own numbers alone. It is recorded once for each batch size; a step then costs torch's operations only.
"""

from collections.abc import Callable, Sequence
from typing import cast

import torch
from torch import Tensor
from torch.func import functional_call, vmap

from fedsim.errors import FedsimError
from fedsim.learning.executors.objective import Objective
from fedsim.learning.executors.stacked.draws import SlotDraws, draws_at_random
from fedsim.learning.executors.stacked.recorder import Run, called, recorded
from fedsim.learning.models.flat_module import FlatModule
from fedsim.learning.models.generators import torch_generator


class ModuleOfSlots:
    def __init__(self, flat: FlatModule, slots: int, autocast: torch.dtype | None, objective: Objective) -> None:
        module, self._objective = flat.module, objective
        self.is_softmax = objective.is_softmax
        self._module, self.slots, self._autocast = module, slots, autocast
        own = dict(module.named_buffers())
        trained = [(name, one) for name, one in module.named_parameters() if one.requires_grad]
        numbers = [*trained, *((name, own[name]) for name in flat.buffers)]
        self._names = [name for name, _ in numbers]
        self._shapes = [one.shape for _, one in numbers]
        self._sizes = [shape.numel() for shape in self._shapes]
        self._parameters = len(numbers) - len(flat.buffers)
        # Every slot has frozen parameters of its own: products with one array for all are rounded by the slots in use.
        frozen = [(name, one.detach()) for name, one in module.named_parameters() if not one.requires_grad]
        self._frozen_names = [name for name, _ in frozen]
        self._frozen = [one.repeat(slots, *[1] * one.dim()) for _, one in frozen]
        self.buffer_count = len(flat.buffers)
        self.count = flat.layout.parameters
        self.buffers = flat.vector.numel() - self.count

    def pieces(self, numbers: Tensor) -> list[Tensor]:
        """Return parameters and buffers of all slots, as views of an array of shape (slots, d)."""
        split = torch.split(numbers, self._sizes, dim=1)
        return [piece.view(self.slots, *shape) for piece, shape in zip(split, self._shapes, strict=True)]

    def outputs(
        self, numbers: Sequence[Tensor], images: Tensor, frozen: Sequence[Tensor] = ()
    ) -> tuple[Tensor, list[Tensor]]:
        """Return the scores of the module of one slot, shape (n, classes), and its buffers afterwards."""
        buffers = [one.clone() for one in numbers[self._parameters :]]
        named = dict(zip(self._names, (*numbers[: self._parameters], *buffers), strict=True))
        named |= dict(zip(self._frozen_names, frozen, strict=False))
        with torch.autocast("cpu", self._autocast, self._autocast is not None, cache_enabled=False):
            scores = functional_call(self._module, named, (images,))
        return scores.float(), buffers

    def step(
        self, pieces: Sequence[Tensor], images: Tensor, weights: Tensor, targets: Tensor, draws: SlotDraws
    ) -> tuple[Run, bool]:
        """Return a function that computes gradients for batches of these shapes, and whether it draws at random.

        The function takes these arrays in a row. It returns the gradient of shape (slots, p), the log-probabilities or
        the losses of the samples, and the buffers afterwards.
        """
        objective, count = self._objective, self._parameters

        def compute(*given: Tensor) -> list[Tensor]:
            *pieces, images, weights, targets = given
            own = [one.detach().requires_grad_() for one in pieces[:count]]
            with torch.enable_grad():
                scores, after = vmap(self.outputs, randomness="different")(
                    [*own, *pieces[count:]], images, self._frozen
                )
                found = scores if objective.is_softmax else vmap(objective.losses)(scores, targets)
            slopes = weights
            if objective.is_softmax:
                # torch's log_softmax and its backward pass cost twice as much on rows of few classes.
                shifted = scores.detach() - scores.detach().amax(2, keepdim=True)
                powers = shifted.exp()
                total = powers.sum(2, keepdim=True)
                slopes, shown = powers * (weights / total) + targets, shifted - total.log()
            else:
                shown = found.detach()
            slopes_of = zip(own, _gradients(found, own, slopes), strict=True)
            known = [torch.zeros_like(one) if slope is None else slope for one, slope in slopes_of]
            flat = torch.cat([one.reshape(self.slots, -1) for one in known], dim=1)
            return [flat, shown, *(one.detach() for one in after)]

        self._module.train()
        return _traced(compute, pieces, (images, weights, targets), draws)

    def mixes_samples(self, images: Tensor) -> bool:
        """Return whether one of several images changes the scores of the others."""
        self._module.train()
        other = images.clone()
        # Tokens are whole numbers from 0 on; 0 and 1 are in every vocabulary.
        other[-1] = -other[-1] + 0.25 if other.is_floating_point() else (other[-1] == 0).long()
        with torch_generator(0), torch.no_grad():
            numbers = self._drawn()
            found = [self.outputs(numbers, one)[0][:-1] for one in (images, other)]
        return not torch.equal(*found)

    def mixes_losses(self, images: Tensor, targets: Tensor) -> bool:
        """Return whether losses of some samples depend on the others; see `Objective.mixes_samples`."""
        self._module.train()
        with torch_generator(0), torch.no_grad():
            return self._objective.mixes_samples(self.outputs(self._drawn(), images)[0], targets)

    def _drawn(self) -> list[Tensor]:
        """Return numbers of a model at random."""
        return [0.1 * torch.randn(shape) for shape in self._shapes]


def _gradients(found: Tensor, trained: Sequence[Tensor], slopes: Tensor) -> Sequence[Tensor | None]:
    """Call what is below `torch.autograd.grad`, which imports the shapes of torch's compiler, and sympy with them."""
    run = torch.autograd.graph._engine_run_backward
    return cast(
        Sequence[Tensor | None],
        run((found,), (slopes,), False, False, tuple(trained), allow_unreachable=True, accumulate_grad=False),
    )


def _traced(
    compute: Callable[..., list[Tensor]], lasting: Sequence[Tensor], example: Sequence[Tensor], draws: SlotDraws
) -> tuple[Run, bool]:
    """Return a function as a list of torch's operations, and whether it draws at random."""
    with torch_generator(0):
        try:
            graph = recorded(compute, (*lasting, *example))
        except (RuntimeError, TypeError, ValueError, NotImplementedError) as error:
            raise FedsimError(
                f"learning.model: torch cannot map this module over clients ({error}); allowed with the executor "
                "'stacked': modules (and a learning.task) without branches on values; any with 'sequential'"
            ) from error
    drawing = [node for node in graph.graph.nodes if draws_at_random(node)]
    for node in drawing:
        node.target = draws.drawing(node.target)
    return called(graph), bool(drawing)
