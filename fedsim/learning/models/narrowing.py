"""Narrower models, measured on their own modules."""

from collections.abc import Sequence

from fedsim.errors import ScenarioError
from fedsim.learning.data.shapes import Shape
from fedsim.learning.models.flat_module import build_flat
from fedsim.learning.models.layout import ModelLayout, NarrowModel, held
from fedsim.learning.models.settings import CanNarrow, ModelPart


def narrow_models(
    model: ModelPart, layout: ModelLayout, shape: Shape, classes: int, seed: int, ratios: Sequence[float]
) -> tuple[NarrowModel, ...]:
    shapes = tuple(entry.shape for entry in layout.entries)
    whole = NarrowModel(1.0, shapes, layout.initial.size, layout.parameters, 1.0)
    if len(ratios) == 1:
        return (whole,)
    from fedsim.learning.models.flops import training_flops  # torch's counter, which takes a while to import

    if not isinstance(model, CanNarrow):
        raise ScenarioError(
            f"learning.model: {type(model).__name__} has no narrower models; allowed with sub-models by width: mlp, "
            "cnn3, or a model with a method narrowed(ratio)"
        )
    operations, found = training_flops(model, shape, classes), [whole]
    for ratio in ratios[1:]:
        cut = model.narrowed(ratio)
        flat = build_flat(cut, shape, classes, seed)
        inner = flat.layout
        if not all(one.requires_grad for one in flat.module.parameters()):
            raise ScenarioError(
                f"learning.model: {type(model).__name__} has parameters without a gradient, whose narrower ones are no "
                "part of a message; allowed with sub-models by width: models whose parameters are all trained"
            )
        names = [entry.name for entry in inner.entries]
        if names != [entry.name for entry in layout.entries]:
            raise ScenarioError(
                f"learning.model: {type(model).__name__}.narrowed({ratio!r}) has the arrays {', '.join(names)}; "
                "allowed: those of the whole model"
            )
        sizes = tuple(entry.shape for entry in inner.entries)
        held(layout, sizes)
        flops = training_flops(cut, shape, classes) / operations
        found.append(NarrowModel(ratio, sizes, inner.initial.size, inner.parameters, flops))
    return tuple(found)
