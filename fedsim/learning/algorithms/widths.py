"""Clients train narrower models, cut out of the server's: HeteroFL and FedRolex."""

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


class HeteroFL(SubModels):
    """Sub-models of the first channels (Diao, Ding and Tarokh, "HeteroFL", ICLR 2021, sections 3.1 and 3.2).

    A client of width r receives, trains and sends the first ``ceil(r n)`` of the n channels of each hidden layer, with
    their biases and batch normalisation. The server averages each parameter over the clients that hold it, by their
    weights; one that none holds stays as it is. Widths fall by halves, as the paper's levels a to e do.

    Taken: the widths and the averaging. Not taken: the scaler between a layer and its normalisation, so that a narrower
    perceptron has smaller activations; static batch normalisation, as statistics are averaged like other numbers; and
    the masked loss, which leaves classes out that a client does not have.

    Examples
    --------
    >>> given = HeteroFL(widths=(1.0, 0.5), client_widths=(1.0, 0.5, 0.5))
    >>> given.given_widths, HeteroFL().ratios
    ((1.0, 0.5, 0.5), (1.0, 0.5, 0.25, 0.125, 0.0625))
    >>> given.shift(version=3)  # the channels are always the first ones
    0
    """


class FedRolex(SubModels):
    """Sub-models by a rolling window (Alam et al., "FedRolex", NeurIPS 2022, section 3.2, equation 3 and Algorithm 1).

    In round j the window of a layer of n channels begins at channel ``j mod n`` and goes on from the first one after
    the last, so that in n rounds all channels are trained alike. j is the version of the server's model. Averaging is
    that of `HeteroFL`: each parameter over the clients that hold it. With width 1 it is plain training.

    Examples
    --------
    >>> [FedRolex().shift(version) for version in range(3)]  # HeteroFL's windows begin at channel 0 always
    [0, 1, 2]
    """

    def shift(self, version: int) -> int:
        return version
