"""Numbers that clients send beside their updates: losses and accuracy gains, also in response to a question.

Such a number is computed from the client's data as the update is, so it leaks as the update does. A randomiser of its
own makes it private, with a share of the client's epsilon; see `fedsim.privacy.PrivacyAccountant`.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Final, Protocol

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from pydantic import Field

from fedsim.answers import Contract, Number
from fedsim.privacy.mechanisms import laplace_scale
from fedsim.registry import Component, Registry

Numbers = NDArray[np.floating[Any]]


class SideInformation(Protocol):
    """A randomiser of single numbers.

    Examples
    --------
    >>> from fedsim.privacy import ExactNumbers, LaplaceNumbers
    >>> rng = np.random.default_rng(0)
    >>> [round(part.release("accuracy_gain", 0.25, 1e6, rng), 3) for part in (ExactNumbers(), LaplaceNumbers())]
    [0.25, 0.25]
    >>> [part.share for part in (ExactNumbers(), LaplaceNumbers())]
    [0.0, 0.1]
    """

    @property
    def share(self) -> float:
        """Share of a client's epsilon that its numbers cost together, in [0, 0.99]; 0 for numbers sent as they are."""

    def release(self, name: str, value: float, epsilon: float, rng: Generator) -> float:
        """Return what the client sends in place of a number.

        Parameters
        ----------
        name : what it is: ``"loss"``, ``"loss_rms"`` or ``"accuracy_gain"``
        value : of the number; NaN or infinite for a model that has diverged
        epsilon : cost of this number, >= 0
        rng : random generator of the numbers of this release
        """


SIDE_INFORMATION: Final = Contract(
    "randomiser of side information",
    SideInformation,
    {"share": Number(least=0, most=0.99), "release": Number()},
)


class LaplaceNumbers(Component):
    """The Laplace mechanism for each number: epsilon-LDP for the client's whole data, as for its update.

    A loss is clipped to ``[0, clip]`` and an accuracy gain to [-1, 1]. Two data sets change such a number by the width
    of its interval at most, so noise ``Laplace(0, width / epsilon)`` makes it epsilon-LDP (Dwork, McSherry, Nissim and
    Smith, "Calibrating noise to sensitivity in private data analysis", TCC 2006). The sum is clipped to the interval
    again: what is done with a private number leaks nothing more. The promise holds for real numbers, as that of
    `fedsim.privacy.mechanisms`.

    Attributes
    ----------
    share : share of a client's epsilon that its numbers cost together; the updates have the rest
    clip : largest loss that is sent; 5 is about twice the loss of a guess among ten classes
    """

    share: Annotated[float, Field(gt=0, le=0.99)] = 0.1
    clip: Annotated[float, Field(gt=0)] = 5.0

    def release(self, name: str, value: float, epsilon: float, rng: Generator) -> float:
        """Return the clipped and noised number; NaN counts as the largest loss, or as an accuracy gain of -1."""
        least, most = (-1.0, 1.0) if name == "accuracy_gain" else (0.0, self.clip)
        worst = least if name == "accuracy_gain" else most
        clipped = min(max(worst if np.isnan(value) else value, least), most)
        noisy = clipped + rng.laplace(0.0, laplace_scale(most - least, epsilon))
        return float(min(max(noisy, least), most))


class ExactNumbers(Component):
    """Numbers as they are, at no cost: they leak without bound, and the run says so."""

    @property
    def share(self) -> float:
        return 0.0

    def release(self, name: str, value: float, epsilon: float, rng: Generator) -> float:
        return value


def released_numbers(
    side: SideInformation, columns: Mapping[str, Numbers], epsilon: Sequence[float], generators: Iterable[Generator]
) -> dict[str, Numbers]:
    """Return what m clients send in place of their numbers, by name, each of shape (m,)."""
    names, sent = sorted(columns), {name: np.empty(len(epsilon)) for name in columns}
    for i, (cost, rng) in enumerate(zip(epsilon, generators, strict=True)):
        for name in names:
            sent[name][i] = side.release(name, float(columns[name][i]), cost / len(names), rng)
    return {name: column.astype(columns[name].dtype) for name, column in sent.items()}


SIDE_INFORMATIONS: Final = Registry(
    "randomiser of side information",
    "fedsim.side_information",
    ("release",),
    {
        "laplace": "fedsim.privacy.side_information:LaplaceNumbers",
        "exact": "fedsim.privacy.side_information:ExactNumbers",
    },
)
