"""Rules by which the cloud makes its next model of the models of edge servers."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Final, Literal

import numpy as np
from pydantic import Field, field_validator

from fedsim.answers import AnswerError, Contract, Flag, Given, InstanceOf, Number, Numbers, in_words, shaped
from fedsim.arrays import BoolArray, FloatArray, IntArray
from fedsim.capabilities import TIERS
from fedsim.registry import Component, Registry, Slot, refusal
from fedsim.rounds.aggregation.staleness import STALENESS, STALENESS_LAW, Polynomial, StalenessLaw

CLOUD_RULES: Final = Registry(
    "merging of edges",
    "fedsim.edge_mergings",
    ("shares",),
    {
        "asynchronous": "fedsim.rounds.hierarchy.cloud_rules:Asynchronous",
        "fedat": "fedsim.rounds.hierarchy.cloud_rules:FedAT",
        "synchronous": "fedsim.rounds.hierarchy.cloud_rules:Synchronous",
    },
    attributes=("waits_for_all", "skips_idle_edges"),
)


@dataclass(frozen=True)
class EdgeStatus:
    """The state of the E edge servers when the cloud aggregates; all arrays have shape (E,).

    ``samples`` are those of each edge server's clients. ``delivered`` counts the models of each so far, present ones
    included, and ``fresh`` are those that deliver one now. ``staleness`` counts aggregations of the cloud since each
    fetched the model that it started from.
    """

    samples: FloatArray
    delivered: IntArray
    fresh: BoolArray
    staleness: IntArray


class CloudRule(Component, ABC):
    """A rule of the cloud; one that needs edge servers in the order of their speed requires ``"tiers"``.

    Attributes
    ----------
    waits_for_all : whether the cloud aggregates once all edge servers are back, or each model as it arrives
    """

    waits_for_all: ClassVar[bool]

    @property
    def skips_idle_edges(self) -> bool:
        """Whether an edge server without an available client skips the rest of the cloud's round, or waits."""
        return False

    @abstractmethod
    def shares(self, status: EdgeStatus) -> tuple[float, FloatArray]:
        """Return the share of the cloud's present model in the mean, and that of each edge's last model, shape (E,).

        They are at least 0 and add up to 1. The last model of an edge server that has delivered none is the initial
        one. The cloud's server optimiser steps from the present model to the mean; federated averaging takes the mean.

        Parameters
        ----------
        status : EdgeStatus
        """


@dataclass(frozen=True)
class _Shares:
    """The share of the cloud's model and those of the edge servers' models, of sum 1."""

    def __call__(self, answer: object, given: Given) -> tuple[float, FloatArray]:
        pair = InstanceOf(tuple)(answer, given)
        if len(pair) != 2:
            raise AnswerError(in_words(answer), "a pair of the cloud's share and the edge servers' shares")
        own = Number(least=0, most=1)(pair[0], given)
        shares: FloatArray = Numbers(shaped(given["status"].fresh.size), least=0, most=1)(pair[1], given)
        if abs(own + shares.sum() - 1.0) > _TOLERANCE:
            raise AnswerError(f"shares of sum {own + shares.sum():.9g}", "shares of sum 1")
        return own, shares


_TOLERANCE: Final = 1e-9
CLOUD_RULE: Final = Contract(
    "merging of edges", CloudRule, {"waits_for_all": Flag(), "skips_idle_edges": Flag(), "shares": _Shares()}
)


class Synchronous(CloudRule):
    """The mean of all edge servers' models, weighted by their clients' samples; the cloud waits for all of them.

    HierFAVG (Liu, Zhang, Song and Letaief, "Client-Edge-Cloud Hierarchical Federated Learning", ICC 2020, Algorithm
    1). Its weights are the samples of all clients of an edge server, also if only some of them take part, as in the
    authors' code. There every edge server has a new model; here one whose rounds made none is left out.

    Attributes
    ----------
    absent : an edge server without an available client ``"wait"``s for one, and the cloud with it, or ``"skip"``s the
        rest of the cloud's round
    """

    waits_for_all: ClassVar[bool] = True

    absent: Literal["wait", "skip"] = "wait"

    @property
    def skips_idle_edges(self) -> bool:
        return self.absent == "skip"

    def shares(self, status: EdgeStatus) -> tuple[float, FloatArray]:
        samples = status.samples * status.fresh
        return 0.0, samples / samples.sum()


class Asynchronous(CloudRule):
    """A mixing step for each model as it arrives: ``x <- (1 - a) x + a x_edge`` with ``a = mixing * s(staleness)``.

    FedAsync's step (Xie, Koyejo and Gupta, "Asynchronous Federated Optimization", 2019, Algorithm 1) with edge
    servers in the place of clients. Staleness counts the cloud's aggregations since the edge server fetched its model.

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
                "{kind} compares stale updates with fresh ones, and edge servers deliver whole models, one at a time; "
                "allowed: a law of the staleness alone",
                kind=repr(STALENESS.kind_of(law)),
            )
        return law

    def shares(self, status: EdgeStatus) -> tuple[float, FloatArray]:
        factor = STALENESS_LAW.checked(self.staleness).factor(
            status.staleness.astype(np.float64), np.zeros(status.fresh.size)
        )
        shares = self.mixing * factor * status.fresh
        return 1.0 - float(shares.sum()), shares


class FedAT(CloudRule):
    """The mean of the tiers' last models, with greater weights for slow tiers, as each model arrives.

    FedAT (Chai, Chen, Anwar, Zhao, Cheng and Rangwala, "FedAT: A High-Performance and Communication-Efficient
    Federated Learning System with Asynchronous Tiers", SC 2021, section 4.2): with T_m the number of models that
    tier m of M has delivered, the fastest first, and T their sum, ``w = sum over m of T_(M + 1 - m) / T * w_m``. The
    last model of a tier that has delivered none is the initial one; as long as only the fastest tier has delivered, the
    mean is therefore the initial model. Dream-lab's code gives the greatest weight to the tier that delivered least
    often, which is the same as long as faster tiers deliver more often; the paper's order is fixed.
    """

    waits_for_all: ClassVar[bool] = False
    requires: ClassVar[frozenset[str]] = frozenset({TIERS})

    def shares(self, status: EdgeStatus) -> tuple[float, FloatArray]:
        return 0.0, status.delivered[::-1] / status.delivered.sum()
