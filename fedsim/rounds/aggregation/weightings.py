"""By which weights the updates of a cohort count, and whether they make a mean or a sum."""

from abc import ABC, abstractmethod
from typing import Annotated, ClassVar, Final

import numpy as np
from pydantic import Field

from fedsim.answers import Contract, Flag, Numbers, same_shape
from fedsim.arrays import FloatArray, IntArray
from fedsim.errors import ScenarioError
from fedsim.per_client import ClientValues, PerClient, values_of
from fedsim.registry import Component, Registry
from fedsim.selectors import Cohort
from fedsim.streams import Streams

NO_WEIGHT: Final = "the weights of all clients are 0, so that no update would count; allowed: at least one above 0"
"""Why given weights are refused."""


class Weighting(Component, ABC):
    """The weight of each client's update; derive from it, add options as fields, and write `of_clients`.

    A client that was drawn several times counts as often. Policies with an aggregation rule of their own, such as
    FedBuff's, have weights of their own.

    Attributes
    ----------
    scaled : bool
        Whether the weights of the clients that delivered are scaled to sum to 1, or to the sum of the cohort's weights
        where the selector prescribes them. Otherwise they are used as they are.
    takes_prescribed : bool
        Whether weights that the selector prescribes are used in place of these. Otherwise such a selector is refused.
    """

    scaled: ClassVar[bool] = True
    takes_prescribed: ClassVar[bool] = False

    @abstractmethod
    def of_clients(self, samples: IntArray, streams: Streams) -> FloatArray:
        """Return the weight of each client's update, at least 0, shape (K,).

        It is asked once for each server, and for each cohort whose clients draw samples.

        Parameters
        ----------
        samples : training samples of each client, or those that it has drawn, shape (K,)
        streams : random streams of the run
        """


WEIGHTING: Final = Contract(
    "weighting",
    Weighting,
    {"scaled": Flag(), "takes_prescribed": Flag(), "of_clients": Numbers(same_shape("samples"), least=0, most=1e300)},
)


class BySamples(Weighting):
    """A mean by numbers of samples (McMahan et al., AISTATS 2017); equal weights if no client has any.

    Weights that a selector prescribes take their place.
    """

    takes_prescribed: ClassVar[bool] = True

    def of_clients(self, samples: IntArray, streams: Streams) -> FloatArray:
        return _samples(samples)


class Uniform(Weighting):
    """A mean with equal weights, whatever clients have; refuses selectors that prescribe weights."""

    def of_clients(self, samples: IntArray, streams: Streams) -> FloatArray:
        return np.ones(samples.size)


class Given(Weighting):
    """A mean by given weights; refuses selectors that prescribe weights.

    Attributes
    ----------
    weight : float >= 0
        Of each client: a list, a law or a column of a table (`fedsim.per_client`).
    """

    weight: Annotated[ClientValues, PerClient(ge=0)]

    def of_clients(self, samples: IntArray, streams: Streams) -> FloatArray:
        weights = np.empty(samples.size)
        weights[:] = values_of(self, "weight", samples.size, streams, "rounds.weights")
        if not weights.any():
            raise ScenarioError(f"rounds.weights.weight: {NO_WEIGHT}")
        return weights


class Sum(Weighting):
    """A sum of updates, each times ``scale`` and the samples of its client; weights are not scaled to a mean.

    The update of a client that does not deliver is missing from the sum; others do not count for more. FedSampling
    adds ``|S_c| / K`` times each update (Qi et al., IJCAI 2023). Weights that a selector prescribes are used as they
    are, without ``scale``.

    Attributes
    ----------
    scale : float > 0
    """

    scaled: ClassVar[bool] = False
    takes_prescribed: ClassVar[bool] = True

    scale: Annotated[float, Field(gt=0)] = 1.0

    def of_clients(self, samples: IntArray, streams: Streams) -> FloatArray:
        return self.scale * _samples(samples)


def _samples(samples: IntArray) -> FloatArray:
    """Return the samples of clients, or ones if no client has any."""
    return samples.astype(np.float64) if samples.any() else np.ones(samples.size)


WEIGHTINGS: Final = Registry(
    "weighting",
    "fedsim.weightings",
    ("of_clients",),
    {
        "samples": "fedsim.rounds.aggregation.weightings:BySamples",
        "uniform": "fedsim.rounds.aggregation.weightings:Uniform",
        "given": "fedsim.rounds.aggregation.weightings:Given",
        "sum": "fedsim.rounds.aggregation.weightings:Sum",
    },
    default="samples",
    attributes=("scaled", "takes_prescribed"),
)


def cohort_weights(cohort: Cohort, each: FloatArray, weighting: Weighting) -> tuple[FloatArray, float | None]:
    """Return the aggregation weight of each client of a cohort, and the sum to which they are scaled.

    If the selector prescribes no weights, these are the weighting's times draws, scaled to 1; by samples they are
    FedAvg's (PAUSE, equation 2). Prescribed weights are scaled so that the clients that delivered carry the weight of
    the whole cohort, unless clients have divided their updates by a number of samples. The sum is None for weights that
    are used as they are.
    """
    if cohort.weights is not None:
        if not weighting.takes_prescribed:
            raise ScenarioError(
                f"rounds.weights: {WEIGHTINGS.kind_of(weighting)!r} is not allowed; the selector prescribes weights; "
                "allowed: 'samples' or 'sum', which use these"
            )
        prescribed = np.asarray(cohort.weights, dtype=np.float64)
        adds = cohort.sampling is not None and cohort.sampling.divisor is not None
        return prescribed, float(prescribed.sum()) if weighting.scaled and not adds else None
    weight = each if cohort.draws is None else np.asarray(cohort.draws) * each
    return weight, 1.0 if weighting.scaled else None
