"""Sites on a hexagonal grid: the serving ones, and the interference of the others."""

import math
from collections.abc import Callable
from typing import Annotated, Final, Self

import numpy as np
from pydantic import Field, model_validator

from fedsim.arrays import FloatArray, normal_quantile
from fedsim.network.radio.contracts import Fading
from fedsim.network.radio.interference import hypercube, interference_states
from fedsim.registry import Settings
from fedsim.units import Decibels, Metres, Positive, db_to_linear

MOST_RINGS: Final = 10
_STATES: Final = 2048

Towards = Callable[[FloatArray, int], tuple[FloatArray, FloatArray]]


class Sites(Settings):
    """Base stations on a hexagonal grid around the one at the origin, all on the same frequencies.

    A client is served by the site towards which its path loss and shadowing together are least, among those of the
    serving rings; all others interfere while they send (`fedsim.network.radio.interference`). Clients beyond the inner
    cells have neighbours on one side only, so they should stand where sites are all around.

    Attributes
    ----------
    inter_site_distance_m : between neighbouring sites
    load : share of the time in which each site sends and is sent to on the frequencies of a client
    uplink_backoff_db : mean reduction of the power of clients of other cells below their greatest, by power control
    rings : of sites around the origin, and around any site in the uplink; 0 for no neighbours, 1 for six
    serving_rings : number of rings that serve: 0 for the site at the origin alone, 1 for 7 sites, 2 for 19
    """

    inter_site_distance_m: Positive[Metres] = 500.0
    load: Annotated[float, Field(ge=0, le=1)] = 0.5
    uplink_backoff_db: Annotated[Decibels, Field(ge=0, le=60)] = 0.0
    rings: Annotated[int, Field(ge=0, le=MOST_RINGS)] = 1
    serving_rings: Annotated[int, Field(ge=0, le=MOST_RINGS)] = 0

    @model_validator(mode="after")
    def _serving_are_some_of_all(self) -> Self:
        if self.serving_rings > self.rings:
            raise ValueError(
                f"serving_rings = {self.serving_rings} is not allowed; it must be at most rings = {self.rings}"
            )
        return self

    @property
    def serving(self) -> int:
        return 1 + 3 * self.serving_rings * (self.serving_rings + 1)

    def positions_m(self) -> FloatArray:
        return hexagonal_sites(self.inter_site_distance_m, self.rings)

    def uplink_states_mw(self, power_dbm: float, towards: Towards, fading: Fading) -> FloatArray:
        """Return the power in mW at a site from clients of other cells in equally likely states, shape (2048,).

        In each cell of the rings around a site one client sends for a share `load` of the time from a place uniform
        over the cell, with `power_dbm` less the back-off. Lines of sight, buildings, shadowing and fading differ from
        state to state. The loss of a client is at least that towards its own site: otherwise this site would serve it.
        """
        around = hexagonal_sites(self.inter_site_distance_m, self.rings)[1:]
        shape = _STATES, len(around)
        u, v = (hypercube(*shape, name).ravel() for name in ("interference-radius", "interference-angle"))
        within = in_hexagon(u, v, self.inter_site_distance_m)
        here = within + np.broadcast_to(around, (*shape, 2)).reshape(-1, 2)
        losses = []
        for site, place in enumerate((here, within)):
            loss, sigma = towards(np.hypot(place[:, 0], place[:, 1]), site)
            losses.append(loss + sigma * normal_quantile(hypercube(*shape, f"interference-shadowing-{site}")).ravel())
        received_mw = db_to_linear(power_dbm - self.uplink_backoff_db - np.maximum(*losses)).reshape(shape)
        return np.asarray((received_mw * interference_states(len(around), self.load, fading, _STATES)).sum(axis=1))


def hexagonal_sites(inter_site_distance_m: float, rings: int) -> FloatArray:
    """Return the sites of a hexagonal grid in metres, the origin first and ring by ring, shape (1 + 3 r (r + 1), 2)."""
    steps = [
        (ring, q, s)
        for q in range(-rings, rings + 1)
        for s in range(-rings, rings + 1)
        if (ring := max(abs(q), abs(s), abs(q + s))) <= rings
    ]
    _, east, slanted = np.array(sorted(steps), dtype=np.float64).T
    return inter_site_distance_m * np.column_stack([east + slanted / 2, slanted * math.sqrt(3) / 2])


def in_hexagon(u: FloatArray, v: FloatArray, inter_site_distance_m: float) -> FloatArray:
    """Return points uniform over the hexagon of a site at the origin, in metres, shape (n, 2)."""
    side = inter_site_distance_m / math.sqrt(3)
    rhombus = np.minimum(np.floor(3 * v), 2)
    along, across = side * u, side * (3 * v - rhombus)
    first, second = (math.pi / 6 + (rhombus + edge) * 2 * math.pi / 3 for edge in (0, 1))
    return np.column_stack(
        [along * np.cos(first) + across * np.cos(second), along * np.sin(first) + across * np.sin(second)]
    )
