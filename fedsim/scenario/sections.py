"""The tables of a scenario that belong to no room of their own, and the ranges of their values."""

from typing import Annotated

from pydantic import Field

from fedsim.network import PLACEMENTS, Placement
from fedsim.registry import Settings, Slot
from fedsim.rounds import LATE, POLICIES, Edges, Faults, LateRule, RoundPolicy

Count = Annotated[int, Field(ge=1)]


class Crowd(Settings):
    """How many clients there are and where they stand.

    Attributes
    ----------
    clients : int from 1 to 2**32
    placement : where they stand, for networks with distances; a disc of 250 m by default
    """

    clients: Annotated[int, Field(ge=1, le=2**32)]
    placement: Annotated[Placement, Slot(PLACEMENTS)] = Field(
        default_factory=lambda: PLACEMENTS.make({"kind": "disc", "radius_m": 250.0})
    )


class Rounds(Settings):
    """How many rounds there are and when each is over.

    Attributes
    ----------
    count : int >= 1
    policy : when a round is over
    late : what becomes of clients that are late; ``"cancel"`` frees what they used. Asynchronous policies have a rule
        of their own
    minimum_updates : with fewer than these a round ends without a new model, and what has arrived is thrown away
    edges : edge servers between clients and cloud, each with rounds of its own under this policy; ``count`` and the
        rest of this table then speak of the cloud's rounds. None for a flat federation
    faults : what breaks while the run goes on; None for nothing
    until_s : no round starts at or after this simulated second
    target_accuracy : the run ends with the first evaluation that reaches it
    """

    count: Count
    policy: Annotated[RoundPolicy, Slot(POLICIES)] = Field(default_factory=lambda: POLICIES.make("wait-for-all"))
    late: Annotated[LateRule, Slot(LATE)] = Field(default_factory=lambda: LATE.make("cancel"))
    minimum_updates: Count = 1
    edges: Edges | None = None
    faults: Faults | None = None
    until_s: Annotated[float, Field(gt=0)] | None = None
    target_accuracy: Annotated[float, Field(gt=0, le=1)] | None = None


class Results(Settings):
    """What is measured and how it is drawn.

    Attributes
    ----------
    evaluate_every : rounds between evaluations of the global model on the whole test set
    smoothing : window of the causal mean over evaluations in figures and summaries; 1 for none
    target_accuracy : what the summary's time to accuracy refers to
    audit : whether to check after every round that bits, time and energy are conserved, and stop the run if they are
        not; the history then has `accounts` of where every client's time went
    """

    evaluate_every: Count = 1
    smoothing: Count = 1
    target_accuracy: Annotated[float, Field(gt=0, le=1)] = 0.8
    audit: bool = False
