"""Refusals of samples that a model does not take."""

from fedsim.errors import ScenarioError
from fedsim.learning.data.shapes import Shape, TokenShape, TypedShape

TEXT_MODELS = "text-cnn, text-attention, char-lstm"


def of_images(shape: Shape, kind: str, least: int) -> tuple[int, int, int]:
    """Return channels, height and width, or raise `ScenarioError` if samples are no images or too small."""
    if isinstance(shape, TokenShape | TypedShape) or len(shape) != 3:
        raise ScenarioError(f"learning.model: {kind} needs images, and these samples are {in_words(shape)}")
    channels, height, width = shape
    if min(height, width) < least:
        raise ScenarioError(
            f"learning.model: {kind} needs images of at least {least} x {least} pixels, these have {height} x {width}; "
            f"allowed here: mlp, or larger images (mnist, fashion-mnist, cifar-10)"
        )
    return channels, height, width


def of_numbers(shape: Shape, kind: str) -> Shape:
    if isinstance(shape, TokenShape):
        raise ScenarioError(
            f"learning.model: {kind} needs numbers, and these samples are {in_words(shape)}; allowed here: "
            f"{TEXT_MODELS}; for the task 'next-token' char-lstm with places = 'each'"
        )
    if isinstance(shape, TypedShape):
        raise ScenarioError(
            f"learning.model: {kind} needs numbers of float32, and these samples are {in_words(shape)}; allowed: a "
            "model of your own, or samples of float32"
        )
    return shape


def of_text(shape: Shape, kind: str) -> TokenShape | tuple[int, int]:
    """Return length and vocabulary, or length and width of vectors; `ScenarioError` if samples are neither."""
    if isinstance(shape, TokenShape):
        return shape
    if len(shape) != 2 or isinstance(shape, TypedShape):
        raise ScenarioError(f"learning.model: {kind} needs text, and these samples are {in_words(shape)}")
    return shape[0], shape[1]


def in_words(shape: Shape) -> str:
    """Return what samples of a shape are.

    >>> in_words((3, 32, 32)), in_words((60,)), in_words(TokenShape(30, 5000))
    ('images of 3 x 32 x 32', 'numbers of shape (60,)', 'texts of 30 tokens')
    """
    if isinstance(shape, TokenShape):
        return f"texts of {shape.length} tokens"
    if isinstance(shape, TypedShape):
        return f"{shape.dtype} of shape {tuple(shape)}"
    return f"images of {' x '.join(map(str, shape))}" if len(shape) == 3 else f"numbers of shape {tuple(shape)}"
