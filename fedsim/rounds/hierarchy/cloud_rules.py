"""How the cloud turns the models that edge servers bring into its next one."""

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Final, Literal, Protocol

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, field_validator

from fedsim.arrays import FloatArray
from fedsim.capabilities import TIERS, Capable
from fedsim.registry import Component, Registry, Slot, refusal
from fedsim.rounds.aggregation.staleness import STALENESS, Polynomial, StalenessLaw

CLOUD_RULES: Final = Registry(
    "merging of edges",
    "fedsim.edge_mergings",
    ("shares",),
    {
        "asynchronous": "fedsim.rounds.hierarchy.cloud_rules:Asynchronous",
        "fedat": "fedsim.rounds.hierarchy.cloud_rules:FedAT",
        "synchronous": "fedsim.rounds.hierarchy.cloud_rules:Synchronous",
    },
    attributes=("waits_for_all",),
)


@dataclass(frozen=True)
class EdgeStatus:
    """How the E edge servers stand when the cloud merges.

    Attributes
    ----------
    samples : training samples of the clients of each, shape (E,)
    came : how many models each has brought, those at hand included, shape (E,)
    fresh : whose models are at hand, shape (E,)
    staleness : how often the cloud has merged since each of these fetched its model, shape (E,)
    """

    samples: FloatArray
    came: NDArray[np.int64]
    fresh: NDArray[np.bool_]
    staleness: NDArray[np.int64]


class CloudRule(Capable, Protocol):
    """The rule by which the cloud merges.

    A rule may also have ``skips`` (bool): an edge server at which nobody is there sits the cloud's round out.

    Attributes
    ----------
    waits_for_all : whether the cloud merges when all edge servers have come, or each as it comes
    requires : ``{"tiers"}`` if edge servers must be ordered by speed, the fastest first
    """

    waits_for_all: ClassVar[bool]

    def shares(self, standing: EdgeStatus) -> tuple[float, FloatArray]:
        """Return the share of the cloud's present model in the next, and that of each edge's last one, shape (E,).

        They are at least 0 and add up to 1. An edge that has never come stands with the initial model.
        """
        ...


class Synchronous(Component):
    """The cloud waits for all edge servers and takes the mean of their models, weighted by their clients' samples.

    HierFAVG (Liu, Zhang, Song and Letaief, "Client-Edge-Cloud Hierarchical Federated Learning", ICC 2020, Algorithm
    1). Its weights are the samples of all clients of an edge, also where only some of them take part, as in the
    authors' code. There every edge always has a new model; here one whose rounds brought none is left out.

    Attributes
    ----------
    absent : what an edge server does at which nobody is there: ``"wait"`` for somebody, and the cloud with it, or
        ``"skip"`` the rest of the cloud's round
    """

    waits_for_all: ClassVar[bool] = True

    absent: Literal["wait", "skip"] = "wait"

    @property
    def skips(self) -> bool:
        """Whether an edge server at which nobody is there sits the cloud's round out."""
        return self.absent == "skip"

    def shares(self, standing: EdgeStatus) -> tuple[float, FloatArray]:
        """Return the shares in the samples behind the models at hand."""
        samples = standing.samples * standing.fresh
        return 0.0, samples / samples.sum()


class Asynchronous(Component):
    """The cloud mixes each edge's model in as it comes: ``x <- (1 - a) x + a x_edge``, ``a = mixing * s(staleness)``.

    FedAsync's step (Xie, Koyejo and Gupta, "Asynchronous Federated Optimization", 2019, Algorithm 1) with edge
    servers in the place of clients. Staleness is how often the cloud has merged since the edge fetched its model.

    Attributes
    ----------
    mixing : float in (0, 1], the paper's alpha
    staleness : law s
    """

    waits_for_all: ClassVar[bool] = False

    mixing: Annotated[float, Field(gt=0, le=1)] = 0.6
    staleness: Annotated[StalenessLaw, Slot(STALENESS)] = Polynomial()

    @field_validator("staleness")
    @classmethod
    def _needs_no_updates(cls, law: Any) -> Any:
        if law.uses_deviation:
            raise refusal(
                "does_not_fit",
                "{kind} compares stale updates with fresh ones, and edge servers bring whole models, one at a time; "
                "allowed: a law of the staleness alone",
                kind=repr(STALENESS.kind_of(law)),
            )
        return law

    def shares(self, standing: EdgeStatus) -> tuple[float, FloatArray]:
        """Return 1 - a for the cloud's model and a for the one at hand."""
        factor = self.staleness.factor(standing.staleness.astype(np.float64), np.zeros(standing.fresh.size))
        shares = self.mixing * factor * standing.fresh
        return 1.0 - float(shares.sum()), shares


class FedAT(Component):
    """Semi-asynchronous tiers: the mean of the tiers' last models, slow tiers weighing more.

    FedAT (Chai, Chen, Anwar, Zhao, Cheng and Rangwala, "FedAT: A High-Performance and Communication-Efficient
    Federated Learning System with Asynchronous Tiers", SC 2021, section 4.2): with T_m the number of models that
    tier m of M has brought, the fastest first, and T their sum, ``w = sum over m of T_(M + 1 - m) / T * w_m``. A tier
    that has never come stands with the initial model, so at first, while only the fastest has, the mean is the
    initial model. Dream-lab's code gives the greatest weight to the tier that came least often instead, which is
    the same as long as faster tiers come more often; the paper's order is fixed.
    """

    waits_for_all: ClassVar[bool] = False
    requires: ClassVar[frozenset[str]] = frozenset({TIERS})

    def shares(self, standing: EdgeStatus) -> tuple[float, FloatArray]:
        """Return the m-th slowest tier's share in all visits for the m-th fastest."""
        return 0.0, standing.came[::-1] / standing.came.sum()
