"""Shadowing by obstacles between a site and a client: log-normal, equal in both directions.

A law gives standard normal numbers for every client and site; a cell multiplies them by the standard deviation in
dB of each link. Positive values weaken the signal. Streams: ``shadowing`` by (client, site) for independent
numbers; ``shadowing-field`` and ``shadowing-field-indoor`` by name of a field for correlated ones, and
``shadowing-common`` and ``shadowing-own`` by (client, site) for their exact form.
"""

import math
from functools import lru_cache
from typing import Annotated, Final, Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from fedsim.answers import Contract, Numbers, shaped
from fedsim.arrays import BoolArray, FloatArray, IntArray, normal_quantile
from fedsim.errors import ScenarioError
from fedsim.registry import Component, Registry
from fedsim.streams import Key, Streams
from fedsim.units import Bound, Metres, Positive

SHADOWINGS = Registry(
    "shadowing",
    "fedsim.shadowings",
    ("standard",),
    {
        "independent": "fedsim.network.radio.shadowing:IndependentShadowing",
        "correlated": "fedsim.network.radio.shadowing:CorrelatedShadowing",
    },
)

MOST_EXACT: Final = 4096
"""Greatest number of clients for the exact method, whose memory grows with its square and its time with its cube."""

_WAVES: Final = 256
_ROWS: Final = 512


class Shadowing(Protocol):
    """The joint law of the shadowing of clients and sites.

    Examples
    --------
    >>> from fedsim.streams import Streams
    >>> class SameForAll:
    ...     def standard(self, positions_m, sites, streams, client=None):
    ...         return np.full((len(positions_m), sites), -1.0)
    >>> law: Shadowing = SameForAll()
    >>> 8.0 * law.standard(np.zeros((2, 2)), sites=1, streams=Streams(0))  # dB, of a cell with a deviation of 8 dB
    array([[-8.],
           [-8.]])
    """

    def standard(
        self, positions_m: FloatArray, sites: int, streams: Streams, client: IntArray | None = None
    ) -> FloatArray:
        """Return standard normal numbers, shape (n, sites).

        Parameters
        ----------
        positions_m : of the clients in metres, shape (n, 2)
        sites : number of sites
        streams : random streams of the run
        client : ids, shape (n,), as in `RandomPathLoss.draw`; 0..n-1 if not given
        """
        ...


@runtime_checkable
class BuildingShadowing(Shadowing, Protocol):
    """A joint law that differs for clients in buildings."""

    def standard_in_buildings(
        self,
        positions_m: FloatArray,
        sites: int,
        streams: Streams,
        indoor: BoolArray,
        client: IntArray | None = None,
    ) -> FloatArray:
        """Return standard normal numbers, shape (n, sites).

        Parameters
        ----------
        positions_m, sites, streams, client : as in `Shadowing.standard`
        indoor : whether each client is in a building, shape (n,)
        """
        ...


_STANDARD: Final = Numbers(shaped("positions_m", "sites"))
SHADOWING: Final = Contract("shadowing", BuildingShadowing, {"standard": _STANDARD, "standard_in_buildings": _STANDARD})


class IndependentShadowing(Component):
    """Independent shadowing of every client and site, at any positions."""

    def standard(
        self, positions_m: FloatArray, sites: int, streams: Streams, client: IntArray | None = None
    ) -> FloatArray:
        ids = np.arange(positions_m.shape[0]) if client is None else client
        return normal_quantile(streams.uniform("shadowing", ids[:, None], np.arange(sites)))


class CorrelatedShadowing(Component):
    """Shadowing that is correlated between clients at nearby places, and between sites.

    Over a distance d the correlation is ``exp(-d / decorrelation_m)`` (M. Gudmundson, "Correlation model for shadow
    fading in mobile radio systems", Electronics Letters 27(23), 1991; 3GPP TR 38.901, clause 7.4.4); between two
    sites it is `site_correlation` at one place.

    Attributes
    ----------
    decorrelation_m : distance at which the correlation has fallen to 1/e. TR 38.901, table 7.5-6: UMa 37 m with and
        50 m without a line of sight, UMi 10 and 13, RMa 37 and 120, InH 10 and 6, InF 10 and 10; for clients in
        buildings 7 m in UMa and UMi and 120 m in RMa
    indoor_decorrelation_m : distance for clients in buildings, whose shadowing is then independent of that of clients
        outdoors; None for no difference
    site_correlation : 0.5 is the usual assumption (TR 36.814, table A.2.1.1-2); 0 for independent sites
    method : ``"field"`` or ``"exact"``

    Notes
    -----
    ``"field"`` is a sum of 256 cosine waves, a function of the place and the run's seed alone. Over all seeds it has
    exactly the exponential correlation, as the wave numbers are drawn from its spectrum: with ``u`` uniform,
    ``k = sqrt((1 - u)^-2 - 1) / decorrelation_m``, stratified in u. One place's value over all seeds is normal up to
    an excess kurtosis of -1.5/256.

    ``"exact"`` multiplies independent normals by the Cholesky factor of the correlation matrix in the order of the
    clients; a client's value depends on those before it and not on those after it (up to rounding). At most
    `MOST_EXACT` clients.
    """

    decorrelation_m: Annotated[Positive[Metres], Bound(1e-2, 1e9)] = 50.0
    indoor_decorrelation_m: Annotated[Positive[Metres], Bound(1e-2, 1e9)] | None = None
    site_correlation: Annotated[float, Field(ge=0, le=1)] = 0.5
    method: Literal["field", "exact"] = "field"

    def standard(
        self, positions_m: FloatArray, sites: int, streams: Streams, client: IntArray | None = None
    ) -> FloatArray:
        self._refuse_exact(client)
        return self._drawn(positions_m, sites, streams, np.arange(len(positions_m)), self.decorrelation_m, "")

    def standard_in_buildings(
        self,
        positions_m: FloatArray,
        sites: int,
        streams: Streams,
        indoor: BoolArray,
        client: IntArray | None = None,
    ) -> FloatArray:
        if self.indoor_decorrelation_m is None or not indoor.any():
            return self.standard(positions_m, sites, streams, client)
        self._refuse_exact(client)
        value = np.empty((len(positions_m), sites))
        for part, decorrelation_m, kind in (
            (np.flatnonzero(~indoor), self.decorrelation_m, ""),
            (np.flatnonzero(indoor), self.indoor_decorrelation_m, "-indoor"),
        ):
            if part.size:
                value[part] = self._drawn(positions_m[part], sites, streams, part, decorrelation_m, kind)
        return value

    def _refuse_exact(self, client: IntArray | None) -> None:
        if client is not None and self.method == "exact":
            raise ScenarioError("method: 'exact' is not allowed where clients move; it must be 'field'")

    def _drawn(
        self, positions_m: FloatArray, sites: int, streams: Streams, row: IntArray, decorrelation_m: float, kind: str
    ) -> FloatArray:
        if self.method == "exact":
            common, own = _exact(positions_m, sites, streams, row, decorrelation_m)
        else:
            common, own = _field(positions_m, sites, streams, decorrelation_m, kind)
        return math.sqrt(self.site_correlation) * common + math.sqrt(1.0 - self.site_correlation) * own


def _field(
    positions_m: FloatArray, sites: int, streams: Streams, decorrelation_m: float, kind: str
) -> tuple[FloatArray, FloatArray]:
    """Return the part that all sites have in common, shape (n, 1), and that of each, shape (n, sites)."""
    fields = [
        wave_field(positions_m, decorrelation_m, *_waves(streams.seed, f"shadowing-field{kind}", name))
        for name in ("common", *range(sites))
    ]
    return fields[0][:, None], np.column_stack(fields[1:])


def _exact(
    positions_m: FloatArray, sites: int, streams: Streams, row: IntArray, decorrelation_m: float
) -> tuple[FloatArray, FloatArray]:
    if row.size > MOST_EXACT:
        raise ScenarioError(
            f"method: 'exact' is not allowed for {row.size} clients; "
            f"it must be 'field' where there are more than {MOST_EXACT}"
        )
    factor = _cholesky(positions_m, decorrelation_m)
    common = normal_quantile(streams.uniform("shadowing-common", row[:, None]))
    own = normal_quantile(streams.uniform("shadowing-own", row[:, None], np.arange(sites)))
    return factor @ common, factor @ own


@lru_cache(maxsize=64)
def _waves(seed: int, stream: str, name: Key) -> tuple[FloatArray, FloatArray]:
    """Return wave numbers in turns per metre, shape (2, waves), for a decorrelation distance of 1 m, and phases."""
    rng = Streams(seed).generator(stream, name)
    u = (np.arange(_WAVES) + rng.random(_WAVES)) / _WAVES
    number = np.sqrt((1.0 - u) ** -2 - 1.0) / (2 * np.pi)
    direction, phase = rng.random((2, _WAVES))
    return np.stack([np.cos(2 * np.pi * direction), np.sin(2 * np.pi * direction)]) * number, phase


def wave_field(
    positions_m: FloatArray, decorrelation_m: float, turns: FloatArray, phase_turns: FloatArray
) -> FloatArray:
    """Return a Gaussian field with correlation ``exp(-d / decorrelation_m)`` at positions of shape (n, 2), shape (n,).

    It is a sum of waves, ``sqrt(2 / 256) sum(cos(2 pi (turns / decorrelation_m . place + phase_turns)))``.
    """
    turns_per_m = turns / decorrelation_m
    value = np.empty(positions_m.shape[0])
    for low in range(0, value.size, _ROWS):
        place = positions_m[low : low + _ROWS]
        # Elementwise, because the rounding of a matrix product may depend on the number of rows.
        passed = place[:, :1] * turns_per_m[0] + place[:, 1:] * turns_per_m[1] + phase_turns
        # Whole periods are removed in double precision; the cosine of the rest is exact to 1e-7 in single precision,
        # which takes a sixth of the time.
        passed -= np.rint(passed)
        waves = passed.astype(np.float32)
        waves *= np.float32(2 * np.pi)
        value[low : low + _ROWS] = np.cos(waves).sum(axis=1)
    return math.sqrt(2.0 / _WAVES) * value


def _cholesky(positions_m: FloatArray, decorrelation_m: float) -> NDArray[np.float64]:
    """Return the lower factor of the correlation matrix; clients at one place differ by a part in 1e5."""
    east, north = positions_m.T
    distance = np.hypot(east[:, None] - east, north[:, None] - north)
    correlation = np.exp(-distance / decorrelation_m)
    correlation[np.diag_indices_from(correlation)] += 1e-10
    return np.asarray(np.linalg.cholesky(correlation))
