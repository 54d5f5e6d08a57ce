"""Where clients stand, in metres around a base station at the origin.

Streams: ``placement-radius`` and ``placement-angle`` by client, so that a further client moves nobody.
"""

from typing import Annotated, Self

import numpy as np
from pydantic import Field, NonNegativeFloat, PositiveFloat, model_validator

from fedsim.errors import ScenarioError
from fedsim.network.base import FloatArray
from fedsim.parts import Catalogue, Part
from fedsim.streams import Streams

PLACEMENTS = Catalogue(
    "placement",
    "fedsim.placements",
    ("positions",),
    {
        "disc": "fedsim.network.placement:Disc",
        "given": "fedsim.network.placement:Given",
    },
)


class Disc(Part):
    """Clients spread uniformly over the area between two circles around the base station.

    Attributes
    ----------
    radius_m : radius of the cell
    min_distance_m : nobody stands nearer; the default is the least distance of 3GPP TR 38.901, table 7.2-1,
        for urban micro cells
    """

    radius_m: PositiveFloat
    min_distance_m: NonNegativeFloat = 10.0

    @model_validator(mode="after")
    def _is_an_annulus(self) -> Self:
        if self.min_distance_m >= self.radius_m:
            raise ValueError(
                f"min_distance_m = {self.min_distance_m} is not allowed; it must be below radius_m = {self.radius_m}"
            )
        return self

    def positions(self, clients: int, streams: Streams) -> FloatArray:
        """Return positions of shape (clients, 2); the squared distance is uniform."""
        ids = np.arange(clients)
        inner, outer = self.min_distance_m**2, self.radius_m**2
        distance = np.sqrt(inner + (outer - inner) * streams.uniform("placement-radius", ids))
        angle = 2 * np.pi * streams.uniform("placement-angle", ids)
        return np.column_stack([distance * np.cos(angle), distance * np.sin(angle)])


class Given(Part):
    """Clients at positions written in the scenario.

    Attributes
    ----------
    positions_m : one pair (x, y) per client
    """

    positions_m: Annotated[
        tuple[Annotated[tuple[float, float], Field(strict=False)], ...], Field(min_length=1, strict=False)
    ]

    def positions(self, clients: int, streams: Streams) -> FloatArray:
        """Return the given positions, shape (clients, 2).

        Raises
        ------
        ScenarioError
            If there is not one position per client.
        """
        if len(self.positions_m) != clients:
            raise ScenarioError(
                f"positions_m: {len(self.positions_m)} positions are not allowed; "
                f"there must be one for each of the {clients} clients"
            )
        return np.array(self.positions_m, dtype=np.float64)
