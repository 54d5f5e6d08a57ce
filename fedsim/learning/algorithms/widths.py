"""What HeteroFL and FedRolex have in common: clients train narrower models, cut out of the server's."""

from typing import Annotated, ClassVar, Self

from pydantic import Field, model_validator

from fedsim.learning.algorithms.contracts import LocalAlgorithm

Ratio = Annotated[float, Field(gt=0, le=1)]


class SubModels(LocalAlgorithm):
    """Clients train a part of each layer's channels; the width is known before the training begins.

    Attributes
    ----------
    widths : numbers in (0, 1], falling, the first one 1
        Allowed ratios of the width. A client gets the largest one with which its mean download, work and upload end
        before the deadline of its round, or the smallest one; without a deadline that is 1.
    client_widths : one of them for each client, optional
        Given in place of the deadline's choice.
    """

    changes_messages: ClassVar[bool] = True

    widths: Annotated[tuple[Ratio, ...], Field(strict=False, min_length=1)] = (1.0, 0.5, 0.25, 0.125, 0.0625)
    client_widths: Annotated[tuple[Ratio, ...], Field(strict=False, min_length=1)] | None = None

    @model_validator(mode="after")
    def _falling(self) -> Self:
        if self.widths[0] != 1.0 or any(a <= b for a, b in zip(self.widths, self.widths[1:], strict=False)):
            raise ValueError(f"widths = {list(self.widths)!r} is not allowed; they fall, and the first one is 1.0")
        strange = [width for width in self.client_widths or () if width not in self.widths]
        if strange:
            raise ValueError(f"client_widths: {strange[0]!r} is not allowed; allowed: {list(self.widths)!r}")
        return self

    @property
    def ratios(self) -> tuple[float, ...]:
        return self.widths

    @property
    def given_widths(self) -> tuple[float, ...] | None:
        return self.client_widths
