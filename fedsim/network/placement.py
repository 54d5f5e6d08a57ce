"""Positions of clients, in metres around a base station at the origin.

Streams: ``placement-radius``, ``placement-angle`` and ``placement-cell`` by client, so that a further client changes
no other position.
"""

from typing import Annotated, Self

import numpy as np
from pydantic import Field, model_validator

from fedsim.arrays import FloatArray
from fedsim.errors import ScenarioError
from fedsim.inputs.paths import InputPath
from fedsim.inputs.tables import Table, owned
from fedsim.network.radio.sites import MOST_RINGS, hexagonal_sites, in_hexagon
from fedsim.registry import Component, Registry
from fedsim.streams import Streams
from fedsim.units import COORDINATES, Coordinate, Metres, NonNegative, Positive

PLACEMENTS = Registry(
    "placement",
    "fedsim.placements",
    ("positions",),
    {
        "disc": "fedsim.network.placement:Disc",
        "annulus": "fedsim.network.placement:Annulus",
        "hexagons": "fedsim.network.placement:Hexagons",
        "file": "fedsim.network.placement:FromFile",
        "given": "fedsim.network.placement:Given",
    },
)


class Disc(Component):
    """Clients spread uniformly over the area between two circles around the base station.

    Attributes
    ----------
    radius_m : radius of the cell
    min_distance_m : least distance of a client; the default is the least distance of 3GPP TR 38.901, table 7.2-1,
        for urban micro cells
    """

    radius_m: Positive[Metres]
    min_distance_m: NonNegative[Metres] = 10.0

    @model_validator(mode="after")
    def _is_an_annulus(self) -> Self:
        if self.min_distance_m >= self.radius_m:
            raise ValueError(
                f"min_distance_m = {self.min_distance_m} is not allowed; it must be below radius_m = {self.radius_m}"
            )
        return self

    def positions(self, clients: int, streams: Streams) -> FloatArray:
        return _between_circles(self.min_distance_m, self.radius_m, clients, streams)


class Annulus(Component):
    """Clients spread uniformly over a ring around the base station: a cell's edge, for instance.

    Attributes
    ----------
    inner_m, outer_m : radii of the two circles
    """

    inner_m: NonNegative[Metres]
    outer_m: Positive[Metres]

    @model_validator(mode="after")
    def _has_an_area(self) -> Self:
        if self.inner_m >= self.outer_m:
            raise ValueError(f"inner_m = {self.inner_m} is not allowed; it must be below outer_m = {self.outer_m}")
        return self

    def positions(self, clients: int, streams: Streams) -> FloatArray:
        return _between_circles(self.inner_m, self.outer_m, clients, streams)


class Hexagons(Component):
    """Clients spread uniformly over the hexagonal cells of several sites, one at the origin and rings around it.

    Attributes
    ----------
    inter_site_distance_m : between neighbouring sites; a cell's corner is this over sqrt(3) away from its site
    rings : 0 for the middle cell alone, 1 for 7 cells, 2 for 19
    """

    inter_site_distance_m: Positive[Metres]
    rings: Annotated[int, Field(ge=0, le=MOST_RINGS)] = 0

    def positions(self, clients: int, streams: Streams) -> FloatArray:
        ids = np.arange(clients)
        sites = hexagonal_sites(self.inter_site_distance_m, self.rings)
        cell = np.floor(streams.uniform("placement-cell", ids) * len(sites)).astype(np.int64)
        inside = in_hexagon(
            streams.uniform("placement-radius", ids),
            streams.uniform("placement-angle", ids),
            self.inter_site_distance_m,
        )
        return sites[cell] + inside


class FromFile(Component):
    r"""Clients at the positions of a CSV file.

    Attributes
    ----------
    path : str
        A table with the columns ``x_m`` and ``y_m`` (or ``x_km``, ``x [km]``) and a row for each client, by its id
        or in the order of clients; other columns are ignored.
    """

    path: InputPath

    def positions(self, clients: int, streams: Streams) -> FloatArray:
        table = Table.read(self.path, "crowd.placement.path")
        row = owned(table, clients, "one").row
        return np.column_stack([table.numbers(name, COORDINATES, rows=row) for name in ("x_m", "y_m")])


class Given(Component):
    """Clients at positions written in the scenario.

    Attributes
    ----------
    positions_m : one pair (x, y) per client
    """

    positions_m: Annotated[
        tuple[Annotated[tuple[Coordinate, Coordinate], Field(strict=False)], ...], Field(min_length=1, strict=False)
    ]

    def positions(self, clients: int, streams: Streams) -> FloatArray:
        if len(self.positions_m) != clients:
            raise ScenarioError(
                f"positions_m: {len(self.positions_m)} positions are not allowed; "
                f"there must be one for each of the {clients} clients"
            )
        return np.array(self.positions_m, dtype=np.float64)


def _between_circles(inner_m: float, outer_m: float, clients: int, streams: Streams) -> FloatArray:
    ids = np.arange(clients)
    inner, outer = inner_m**2, outer_m**2
    distance = np.sqrt(inner + (outer - inner) * streams.uniform("placement-radius", ids))
    angle = 2 * np.pi * streams.uniform("placement-angle", ids)
    return np.column_stack([distance * np.cos(angle), distance * np.sin(angle)])
