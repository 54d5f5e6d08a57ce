"""Laws of values that clients draw once, and columns of tables of clients.

A value is a function of the run's seed, of the field and of the client alone: a further client changes no other value.

Streams: ``per-client <field>`` by client, with the dotted path of the field, such as
``per-client devices.compute.samples_per_s``.
"""

import math
from abc import abstractmethod
from typing import Annotated, Final, NamedTuple, Protocol, Self

import numpy as np
from pydantic import Field, model_validator

from fedsim.answers import Contract, Free, Numbers, shaped
from fedsim.arrays import FloatArray, normal_quantile
from fedsim.inputs.paths import InputPath
from fedsim.inputs.tables import Table, owned
from fedsim.inputs.tables.header import Name
from fedsim.registry import Component, Registry
from fedsim.streams import Streams
from fedsim.units import Bound

CLIENT_LAWS: Final = Registry(
    "law of clients",
    "fedsim.client_laws",
    ("values", "limits"),
    {
        "uniform": "fedsim.per_client.laws:Uniform",
        "log-normal": "fedsim.per_client.laws:LogNormal",
        "normal": "fedsim.per_client.laws:Normal",
        "choice": "fedsim.per_client.laws:Choice",
        "column": "fedsim.per_client.laws:Column",
    },
    default="column",
)

_GREATEST: Final = 1e30
_ANY: Final = Bound(0.0, _GREATEST)
Any30 = Annotated[float, Field(ge=-_GREATEST, le=_GREATEST)]
"""A number in the unit of whichever field has the law; the bounds of that field are checked on each value."""
Positive30 = Annotated[float, Field(gt=0, le=_GREATEST)]


class Limits(NamedTuple):
    """The least and the greatest value that a law may give."""

    least: float
    greatest: float


class ClientLaw(Protocol):
    """A law of the values of one field, one for each client."""

    def values(self, clients: int, streams: Streams, field: str) -> FloatArray:
        """Return the value of each client, shape (clients,).

        Parameters
        ----------
        clients : number of clients
        streams : random streams of the run
        field : dotted path of the field
        """

    def limits(self) -> Limits | None:
        """Return between which limits all values lie; None where that is known with the values only."""


CLIENT_LAW: Final = Contract("law of clients", ClientLaw, {"values": Numbers(shaped("clients")), "limits": Free()})


class _Quantiles(Component):
    @model_validator(mode="after")
    def _within_bounds(self) -> Self:
        # The unit of these numbers is that of the field that holds the law.
        return self

    def values(self, clients: int, streams: Streams, field: str) -> FloatArray:
        return self.quantile(streams.uniform(f"per-client {field}", np.arange(clients)))

    @abstractmethod
    def quantile(self, u: FloatArray) -> FloatArray:
        """Return the quantile at each level in (0, 1), of the shape of u."""


class Uniform(_Quantiles):
    """Uniform between two numbers.

    Attributes
    ----------
    least, greatest : the two numbers
    """

    least: Any30
    greatest: Any30

    @model_validator(mode="after")
    def _rises(self) -> Self:
        if self.least > self.greatest:
            raise ValueError(f"least = {self.least} is not allowed; it must be at most greatest = {self.greatest}")
        return self

    def quantile(self, u: FloatArray) -> FloatArray:
        return np.asarray(self.least + (self.greatest - self.least) * u)

    def limits(self) -> Limits:
        return Limits(self.least, self.greatest)


class LogNormal(_Quantiles):
    """A number whose logarithm is normal, between two limits if they are given.

    Attributes
    ----------
    median : of the law without limits
    sigma : standard deviation of the logarithm
    least, greatest : limits; the law given that a value lies between them
    """

    median: Positive30
    sigma: Annotated[float, Field(ge=0, le=10)]
    least: Positive30 | None = None
    greatest: Positive30 | None = None

    @model_validator(mode="after")
    def _holds_values(self) -> Self:
        low, high = (None if limit is None else math.log(limit) for limit in (self.least, self.greatest))
        _span(math.log(self.median), self.sigma, low, high)
        return self

    def quantile(self, u: FloatArray) -> FloatArray:
        low, high = (None if limit is None else math.log(limit) for limit in (self.least, self.greatest))
        drawn = np.exp(_cut_normal(u, math.log(self.median), self.sigma, low, high))
        return np.clip(drawn, *self.limits())

    def limits(self) -> Limits:
        given = Limits(self.least or 0.0, math.inf if self.greatest is None else self.greatest)
        return Limits(self.median, self.median) if self.sigma == 0 else given


class Normal(_Quantiles):
    """A normal number, between two limits if they are given.

    Attributes
    ----------
    mean, std : of the law without limits
    least, greatest : limits; the law given that a value lies between them
    """

    mean: Any30
    std: Annotated[float, Field(ge=0, le=_GREATEST)]
    least: Any30 | None = None
    greatest: Any30 | None = None

    @model_validator(mode="after")
    def _holds_values(self) -> Self:
        _span(self.mean, self.std, self.least, self.greatest)
        return self

    def quantile(self, u: FloatArray) -> FloatArray:
        drawn = _cut_normal(u, self.mean, self.std, self.least, self.greatest)
        return np.clip(drawn, *self.limits())

    def limits(self) -> Limits:
        least, greatest = self.least, self.greatest
        given = Limits(-math.inf if least is None else least, math.inf if greatest is None else greatest)
        return Limits(self.mean, self.mean) if self.std == 0 else given


class Choice(_Quantiles):
    """One of some numbers: classes of devices.

    Attributes
    ----------
    of : the numbers
    weights : how often each is drawn, in proportion; all alike by default
    """

    of: Annotated[tuple[Any30, ...], Field(min_length=1, strict=False)]
    weights: Annotated[tuple[Annotated[float, Field(ge=0, le=1e12)], ...], Field(strict=False)] | None = None

    @model_validator(mode="after")
    def _one_weight_each(self) -> Self:
        if self.weights is not None and (len(self.weights) != len(self.of) or not sum(self.weights) > 0):
            raise ValueError(f"weights = {list(self.weights)} is not allowed; one for each of 'of', and not all 0")
        return self

    def quantile(self, u: FloatArray) -> FloatArray:
        """Return the first number whose cumulative share is at least the level, of the shape of u."""
        weights = np.ones(len(self.of)) if self.weights is None else np.array(self.weights)
        share = np.cumsum(weights) / weights.sum()
        drawn = np.minimum(np.searchsorted(share, u), np.flatnonzero(weights)[-1])
        return np.asarray(np.array(self.of)[drawn])

    def limits(self) -> Limits:
        return Limits(min(self.of), max(self.of))


class Column(Component):
    """A column of a table of clients: CSV with a header, Parquet or NPZ.

    Attributes
    ----------
    column : name of the column; where it states a unit, such as ``delay_ms``, that of the field is made of it
    path : file, such as ``clients.parquet`` of a run folder
        Where it has a column ``client``, ``id`` or ``device``, a row belongs to the client with that id, and otherwise
        row i to client i. Rows of no client are counted in the run's notes.
    """

    column: Annotated[str, Field(min_length=1)]
    path: InputPath

    def values(self, clients: int, streams: Streams, field: str) -> FloatArray:
        table = Table.read(self.path, field)
        row = owned(table, clients, "one").row
        unit = Name.of(field.rpartition(".")[2]).unit
        if unit and table.unit(self.column) is None:
            table.note_of(self.column, f"is read in the unit of the field, {unit.of}: its name states none")
        return table.numbers(self.column, _ANY, to=unit, rows=row)

    def limits(self) -> None:
        """Return None: the values are known when the file is read."""
        return


def _span(centre: float, sigma: float, low: float | None, high: float | None) -> tuple[float, float]:
    """Return the levels of the normal law between which values lie, refusing limits between which none do."""
    from scipy.special import ndtr

    if sigma == 0:
        below = (-math.inf if low is None else low) <= centre <= (math.inf if high is None else high)
        levels = (0.0, 1.0) if below else (1.0, 1.0)
    else:
        levels = (
            0.0 if low is None else float(ndtr((low - centre) / sigma)),
            1.0 if high is None else float(ndtr((high - centre) / sigma)),
        )
    if not levels[1] - levels[0] > 1e-9:
        raise ValueError("between least and greatest lies less than 1e-9 of the law; allowed: limits that leave more")
    return levels


def _cut_normal(u: FloatArray, centre: float, sigma: float, low: float | None, high: float | None) -> FloatArray:
    """Return the quantiles of a normal law given that its values lie between two limits."""
    first, last = _span(centre, sigma, low, high)
    return np.asarray(centre + sigma * normal_quantile(first + (last - first) * u))
