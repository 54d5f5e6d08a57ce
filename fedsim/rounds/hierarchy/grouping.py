"""fedsim.rounds.hierarchy.grouping."""

from typing import Annotated, ClassVar, Final, Protocol

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, NonNegativeInt

from fedsim.arrays import IntArray, Whole
from fedsim.errors import ScenarioError
from fedsim.network import Links
from fedsim.registry import Component, Registry

GROUPINGS: Final = Registry(
    "grouping",
    "fedsim.groupings",
    ("edges_of",),
    {
        "given": "fedsim.rounds.hierarchy.grouping:Given",
        "latency": "fedsim.rounds.hierarchy.grouping:ByLatency",
        "order": "fedsim.rounds.hierarchy.grouping:ByOrder",
        "site": "fedsim.rounds.hierarchy.grouping:BySite",
    },
)


class Grouping(Protocol):
    """Which edge server each client belongs to.

    A grouping may also say ``fastest_first = True`` of itself: edges of lower numbers are faster.
    """

    def edges_of(self, links: Links, expected_s: NDArray[np.float64]) -> IntArray:
        """Return the number of every client's edge server, shape (K,); numbers are 0..E-1 and each occurs.

        Parameters
        ----------
        links : of the run
        expected_s : array of shape (K,), mean time of a whole participation of each client
        """
        ...


class BySite(Component):
    """A client belongs to the site that serves it, each site with clients being an edge server, in the sites' order.

    Sites are the base stations of a network of cells, or the edge servers of a graph at which its transfers end.
    """

    def edges_of(self, links: Links, expected_s: NDArray[np.float64]) -> IntArray:
        """Return the serving site of each client, numbered without gaps.

        Raises
        ------
        ScenarioError
            If the network does not know sites.
        """
        if links.serving is None:
            raise ScenarioError(
                "rounds.edges.grouping: 'site' is not allowed with a network without sites; "
                "allowed: 'order', 'latency', 'given', or a network of cells"
            )
        return np.asarray(np.unique(links.serving, return_inverse=True)[1], dtype=np.int64)


class ByOrder(Component):
    """Clients are dealt out in blocks of consecutive ids, as equal in size as can be.

    Attributes
    ----------
    count : number of edge servers, at most as many as there are clients
    """

    count: Whole

    def edges_of(self, links: Links, expected_s: NDArray[np.float64]) -> IntArray:
        """Return the block of each client."""
        return np.arange(expected_s.size, dtype=np.int64) * self.count // expected_s.size


class ByLatency(Component):
    """Tiers of equal size by expected duration, the fastest first (Chai et al., TiFL, HPDC 2020; FedAT, SC 2021).

    Servers find the tiers by profiling; here the profile is the mean.

    Attributes
    ----------
    count : number of tiers, 5 in both papers, at most as many as there are clients
    """

    fastest_first: ClassVar[bool] = True

    count: Whole = 5

    def edges_of(self, links: Links, expected_s: NDArray[np.float64]) -> IntArray:
        """Return the tier of each client; equal durations by id."""
        rank = np.empty(expected_s.size, dtype=np.int64)
        rank[np.argsort(expected_s, kind="stable")] = np.arange(expected_s.size)
        return rank * self.count // expected_s.size


class Given(Component):
    """Each client's edge server as written in the scenario.

    Attributes
    ----------
    edge : one number for each client, in the order of their ids
    """

    edge: Annotated[tuple[NonNegativeInt, ...], Field(strict=False, min_length=1)]

    def edges_of(self, links: Links, expected_s: NDArray[np.float64]) -> IntArray:
        """Return what is given."""
        return np.array(self.edge, dtype=np.int64)
