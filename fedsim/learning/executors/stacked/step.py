"""The models of several slots, one above the other, and one training step of all of them.

torch.func maps the module's forward pass over the slots; the gradients are ordinary autograd, since a slot's losses
depend on its own numbers alone. It is recorded once for each batch size; a step then costs torch's operations only.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, cast

import torch
from torch import Tensor
from torch._ops import OpOverload
from torch.func import functional_call, vmap

from fedsim.errors import FedsimError
from fedsim.learning.executors.objective import Objective
from fedsim.learning.executors.optimizers import rows_of
from fedsim.learning.executors.stacked.recorder import Run, recorded
from fedsim.learning.generators import own_generators
from fedsim.learning.models.flat_module import FlatModule

_MOST_SIZES: Final = 64
"""Sizes of batches that are tried."""
_NEAR: Final = 1e-4


class ModelsOfSlots:
    """Numbers of shape (slots, d), and views of them as the module's arrays.

    A slot has frozen parameters of its own too: products with one array for all are rounded by the slots in use.
    """

    def __init__(self, flat: FlatModule, slots: int, objective: Objective, autocast: torch.dtype | None) -> None:
        self._module, self.objective, self._autocast = flat.module, objective, autocast
        self.is_softmax = objective.is_softmax
        self.slots, self.count, self.numbers = slots, flat.layout.parameters, rows_of(slots, flat.vector.numel())
        own, parameters = dict(flat.module.named_buffers()), list(flat.module.named_parameters())
        frozen = [(name, one.detach()) for name, one in parameters if not one.requires_grad]
        trained = [(name, one) for name, one in parameters if one.requires_grad]
        moving = [*trained, *((name, own[name]) for name in flat.buffers)]
        self._names, self._shapes = [name for name, _ in (*moving, *frozen)], [one.shape for _, one in moving]
        self._trained, self._moving = len(trained), len(moving)
        split = torch.split(self.numbers, [shape.numel() for shape in self._shapes], dim=1)
        self._arrays = [piece.view(slots, *shape) for piece, shape in zip(split, self._shapes, strict=True)]
        self.trained, self.buffers = self._arrays[: self._trained], self._arrays[self._trained :]
        self._arrays += [one.repeat(slots, *[1] * one.dim()) for _, one in frozen]
        self.steps: dict[int, Run] = {}
        self.draws = _Draws(slots)

    def record(self, images: Tensor, weights: Tensor, targets: Tensor) -> bool:
        """Record a step on batches of these shapes; return whether it draws at random."""
        self._module.train()
        example = images, weights, targets
        with own_generators(0), _attention_in_parts(), refused_unless_mapped():
            run, draws = recorded(self._step, self._arrays, example, self.draws.drawing)
        self.steps[images.shape[1]] = run
        return draws

    def step(self, images: Tensor, weights: Tensor, targets: Tensor) -> Sequence[Tensor]:
        """Return the gradients of `trained`, log-probabilities or losses of samples, and the buffers afterwards."""
        return self.steps[images.shape[1]](images, weights, targets)

    def mixes(self, images: Tensor, *, sizes: bool) -> tuple[bool, Tensor]:
        """Return whether samples have other scores beside others, or in smaller batches if asked, and the scores."""
        self._module.train()
        other, count = images.clone(), len(images)
        # Tokens are whole numbers from 0 on; 0 and 1 are in every vocabulary.
        other[-1] = -other[-1] + 0.25 if other.is_floating_point() else (other[-1] == 0).long()
        whole, beside = map(self._tried_scores, (images, other))
        if not torch.equal(whole[:-1], beside[:-1]):
            return True, whole
        near, fewer = _NEAR * whole.abs().max(), range(1, count, max(1, count // _MOST_SIZES)) if sizes else ()
        parts = ((whole[:size], self._tried_scores(images[:size].clone())) for size in fewer)
        return any((one - other).abs().max() > near for one, other in parts), whole

    def _tried_scores(self, images: Tensor) -> Tensor:
        with own_generators(0), torch.no_grad(), _attention_in_parts():
            return self._scores([0.1 * torch.randn(shape) for shape in self._shapes], images)[0]

    def _scores(self, numbers: Sequence[Tensor], images: Tensor) -> tuple[Tensor, list[Tensor]]:
        """Return the scores of the module of one slot, shape (n, classes), and its buffers afterwards."""
        buffers = [one.clone() for one in numbers[self._trained : self._moving]]
        arrays = [*numbers[: self._trained], *buffers, *numbers[self._moving :]]
        with torch.autocast("cpu", self._autocast, self._autocast is not None, cache_enabled=False):
            scores = functional_call(self._module, dict(zip(self._names, arrays, strict=False)), (images,))
        return scores.float(), buffers

    def _step(self, *given: Tensor) -> list[Tensor]:
        objective, (*arrays, images, weights, targets) = self.objective, given
        own = [one.detach().requires_grad_() for one in arrays[: self._trained]]
        with torch.enable_grad():
            scores, after = vmap(self._scores, randomness="different")([*own, *arrays[self._trained :]], images)
            found = scores if objective.is_softmax else vmap(objective.losses)(scores, targets)
        slopes, shown = weights, found.detach()
        if objective.is_softmax:
            # torch's log_softmax and its backward pass cost twice as much on rows of few classes.
            shifted = scores.detach() - scores.detach().amax(2, keepdim=True)
            powers = shifted.exp()
            total = powers.sum(2, keepdim=True)
            slopes, shown = powers * (weights / total) + targets, shifted - total.log()
        slopes_of = zip(own, _gradients(found, own, slopes), strict=True)
        known = [torch.zeros_like(one) if slope is None else slope for one, slope in slopes_of]
        return [*known, shown, *(one.detach() for one in after)]


class _Draws:
    """Draws inside a model (dropout): each slot has a state of torch's generator, as if its client were trained alone.

    Slots that are not ``active`` get the numbers of the first that is.
    """

    def __init__(self, slots: int) -> None:
        self._slots, self._states = slots, dict[int, Tensor]()
        self.active: Sequence[int] = range(slots)

    def begin(self, seeds: Sequence[int]) -> None:
        """Let the first slots begin with these seeds."""
        self.active = range(len(seeds))
        self._states = {slot: torch.Generator().manual_seed(seed).get_state() for slot, seed in enumerate(seeds)}

    def drawing(self, operation: OpOverload) -> Callable[..., Any]:
        """Return an operation on arrays of all slots that draws each slot's part from its own state."""

        def draw(*args: Any, **kwargs: Any) -> Any:
            slots, generator, drawn = self._slots, torch.default_generator, dict[int, Any]()
            before = generator.get_state()
            for slot in self.active:
                generator.set_state(self._states[slot])
                drawn[slot] = operation(*(_part(one, slot, slots) for one in args), **kwargs)
                self._states[slot] = generator.get_state()
            generator.set_state(before)
            spare = drawn[self.active[0]]
            every = [drawn.get(slot, spare) for slot in range(slots)]
            if isinstance(spare, Tensor):
                return torch.stack(every)
            return tuple(torch.stack(parts) for parts in zip(*every, strict=True))

        return draw


def _part(argument: Any, slot: int, slots: int) -> Any:
    """Return one slot's part of an argument: of an array or of a shape whose first axis are the slots.

    Numbers are made contiguous, since torch draws in the order of the memory.
    """
    if isinstance(argument, Tensor) and argument.dim() and len(argument) == slots:
        return argument[slot].contiguous()
    if isinstance(argument, list | tuple) and argument and argument[0] == slots:
        return argument[1:]
    return argument


@contextmanager
def refused_unless_mapped() -> Iterator[None]:
    """Refuse a model with which torch's mapping over clients, or the replay of what it has called, fails."""
    try:
        yield
    except (RuntimeError, TypeError, ValueError, NotImplementedError, SyntaxError) as error:
        raise FedsimError(
            f"learning.model: torch cannot map this module over clients ({error}); allowed with the executor "
            "'stacked': modules (and a learning.task) without branches on values; any with 'sequential'"
        ) from error


@contextmanager
def _attention_in_parts() -> Iterator[None]:
    """Let attention be products and a softmax: torch's mapping has no rule for the one kernel of a CPU."""
    before = torch.backends.cuda.flash_sdp_enabled()  # type: ignore[no-untyped-call]
    torch.backends.cuda.enable_flash_sdp(False)
    try:
        yield
    finally:
        torch.backends.cuda.enable_flash_sdp(before)


def _gradients(found: Tensor, trained: Sequence[Tensor], slopes: Tensor) -> Sequence[Tensor | None]:
    """Call what is below `torch.autograd.grad`, which imports the shapes of torch's compiler, and sympy with them."""
    run = torch.autograd.graph._engine_run_backward
    return cast(
        Sequence[Tensor | None],
        run((found,), (slopes,), False, False, tuple(trained), allow_unreachable=True, accumulate_grad=False),
    )
