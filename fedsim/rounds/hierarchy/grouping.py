"""Groupings: which edge server each client belongs to."""

from abc import ABC, abstractmethod
from typing import Annotated, ClassVar, Final

import numpy as np
from pydantic import Field, NonNegativeInt

from fedsim.answers import Contract, Free, Numbers, same_shape
from fedsim.arrays import FloatArray, IntArray, Whole
from fedsim.capabilities import SITES, TIERS
from fedsim.errors import ScenarioError
from fedsim.network import Links
from fedsim.registry import Component, Registry

GROUPINGS: Final = Registry(
    "grouping",
    "fedsim.groupings",
    ("edges_of", "misfit"),
    {
        "given": "fedsim.rounds.hierarchy.grouping:Given",
        "latency": "fedsim.rounds.hierarchy.grouping:ByLatency",
        "order": "fedsim.rounds.hierarchy.grouping:ByOrder",
        "site": "fedsim.rounds.hierarchy.grouping:BySite",
    },
)


class Grouping(Component, ABC):
    """The edge server of each client; a grouping that numbers edge servers by speed provides ``"tiers"``."""

    def misfit(self, clients: int) -> tuple[str, object, str] | None:
        """Return an option that does not suit the number of clients, its value and what is allowed; None if all do."""
        return None

    @abstractmethod
    def edges_of(self, links: Links, expected_s: FloatArray) -> IntArray:
        """Return the number of every client's edge server, shape (K,): 0..E-1, each at least once.

        Parameters
        ----------
        links : of the run
        expected_s : mean duration of every client's participation, shape (K,)
        """


GROUPING: Final = Contract(
    "grouping", Grouping, {"edges_of": Numbers(same_shape("expected_s"), least=0, dtype=np.int64), "misfit": Free()}
)


class BySite(Grouping):
    """One edge server for each site that serves clients, in the order of the sites.

    Sites are the base stations of a network of cells, or the edge servers of a graph at which its transfers end.
    """

    requires: ClassVar[frozenset[str]] = frozenset({SITES})

    def edges_of(self, links: Links, expected_s: FloatArray) -> IntArray:
        if links.serving is None:
            raise ScenarioError(
                "rounds.edges.grouping: 'site' is not allowed with a network without sites; "
                "allowed: 'order', 'latency', 'given', or a network of cells"
            )
        return np.asarray(np.unique(links.serving, return_inverse=True)[1], dtype=np.int64)


class ByOrder(Grouping):
    """Blocks of consecutive ids, whose sizes differ by at most one.

    Attributes
    ----------
    count : number of edge servers, at most the number of clients
    """

    count: Whole

    def misfit(self, clients: int) -> tuple[str, object, str] | None:
        if self.count <= clients:
            return None
        return "count", self.count, f"every edge server needs a client; allowed: 1 to crowd.clients = {clients}"

    def edges_of(self, links: Links, expected_s: FloatArray) -> IntArray:
        return np.arange(expected_s.size, dtype=np.int64) * self.count // expected_s.size


class ByLatency(ByOrder):
    """Tiers of equal size by expected duration, the fastest first (Chai et al., TiFL, HPDC 2020; FedAT, SC 2021).

    The papers' servers measure durations to find the tiers; here the tiers follow from mean durations.

    Attributes
    ----------
    count : number of tiers, 5 in both papers, at most the number of clients
    """

    provides: ClassVar[frozenset[str]] = frozenset({TIERS})

    count: Whole = 5

    def edges_of(self, links: Links, expected_s: FloatArray) -> IntArray:
        """Return the tier of each client; clients of equal duration are ordered by id."""
        rank = np.empty(expected_s.size, dtype=np.int64)
        rank[np.argsort(expected_s, kind="stable")] = np.arange(expected_s.size)
        return rank * self.count // expected_s.size


class Given(Grouping):
    """The edge server of each client as given in the scenario.

    Attributes
    ----------
    edge : one number for each client, in the order of their ids
    """

    edge: Annotated[tuple[NonNegativeInt, ...], Field(strict=False, min_length=1)]

    def misfit(self, clients: int) -> tuple[str, object, str] | None:
        if len(self.edge) == clients and set(self.edge) == set(range(max(self.edge) + 1)):
            return None
        allowed = f"one number for each of the {clients} clients (crowd.clients), from 0 without gaps"
        return "edge", list(self.edge), f"allowed: {allowed}"

    def edges_of(self, links: Links, expected_s: FloatArray) -> IntArray:
        return np.array(self.edge, dtype=np.int64)
