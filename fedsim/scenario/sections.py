"""The tables of a scenario, and those of them that belong to no other room."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from fedsim.arrays import Whole
from fedsim.devices import Devices
from fedsim.foreign import Stateful
from fedsim.history.tables import Goal
from fedsim.learning import LEARNERS, Evaluation, LearnerSettings
from fedsim.network import NETWORKS, PLACEMENTS, Network, Placement
from fedsim.privacy import Privacy
from fedsim.registry import Settings, Slot, refusal
from fedsim.rounds import EFFECTS, LATE, POLICIES, Edges, EffectSettings, Faults, LateRule, RoundPolicy
from fedsim.rounds.aggregation.weightings import WEIGHTINGS, BySamples, Weighting
from fedsim.rounds.secure.protocols import SECURE_AGGREGATIONS, SecureAggregation
from fedsim.selectors import SELECTORS
from fedsim.units import Bound, Positive, Seconds, share_of


def _whole_or_word(value: Any) -> Any:
    """Refuse what is neither a whole number from 1 nor one of the words under the field's own path."""
    number = isinstance(value, int) and not isinstance(value, bool) and value >= 1
    if value not in ("never", "last") and not number:
        raise refusal("of_clients", "input should be 'never', 'last' or a whole number of at least 1")
    return value


Accuracy = Annotated[float, BeforeValidator(share_of), Field(gt=0, le=1)]


class Crowd(Settings):
    """The clients and their places.

    Attributes
    ----------
    clients : number of clients, 1 to 10**8
    placement : positions, for networks with distances; a disc of 250 m by default
    """

    clients: Annotated[int, Field(ge=1, le=10**8)]
    placement: Annotated[Placement, Slot(PLACEMENTS)] = Field(
        default_factory=lambda: PLACEMENTS.make({"kind": "disc", "radius_m": 250.0})
    )


class Target(Settings):
    """How good a model ends a run.

    Attributes
    ----------
    metric : ``"loss"``, or a metric of the task by its name
    at_least : smallest value that is good enough; of an accuracy 0.8 or ``"80 %"``
    at_most : largest one; one of the two is given
    """

    metric: str = "accuracy"
    at_least: float | None = None
    at_most: float | None = None

    @classmethod
    def _completed(cls, options: Mapping[str, Any]) -> Mapping[str, Any]:
        if options.get("metric", "accuracy") != "accuracy":
            return options
        shares = {}
        for name in ("at_least", "at_most"):
            try:
                shares[name] = share_of(options.get(name))
            except ValueError as error:
                raise ValueError(f"{name} = {options[name]!r} is not allowed ({error})") from None
        return {**options, **shares}

    @model_validator(mode="after")
    def _has_one_bound(self) -> Self:
        if (self.at_least is None) == (self.at_most is None):
            raise ValueError(
                f"at_least = {self.at_least!r} and at_most = {self.at_most!r} are not allowed; it must be one of them"
            )
        return self

    @property
    def goal(self) -> Goal | None:
        """The goal of another metric than accuracy, whose own stands in the results."""
        if self.metric == "accuracy":
            return None
        value = self.at_most if self.at_least is None else self.at_least
        return None if value is None else Goal(self.metric, value, above=self.at_least is not None)

    def reached(self, evaluation: Evaluation) -> bool:
        """Return whether an evaluation is good enough."""
        found = evaluation.value(self.metric)
        if self.at_least is not None:
            return found >= self.at_least
        return self.at_most is not None and found <= self.at_most


class Rounds(Settings):
    """The rounds: how many there are, and when each is over.

    Attributes
    ----------
    count : largest number of rounds
    policy : when a round is over
    late : what becomes of late clients; ``"cancel"`` frees what they used. Asynchronous policies have their own rule
    weights : by which weights updates count, and whether they make a mean or a sum
    minimum_updates : a round with fewer updates ends without a new model, and its updates are discarded
    refuse_nonfinite_updates : whether an update with a number that is none is discarded, and noted with its client and
        round; it counts as none that arrived. Trainings then run at the end of each round
    secure_aggregation : protocol by which a server learns the sum of a cohort's updates and no single one; its messages
        are on the clock. None for updates in clear
    edges : edge servers between clients and cloud, each of which runs rounds under this policy; ``count`` and the other
        fields of this table then describe the cloud's rounds. None for a flat federation
    faults : crashes, link outages and restarts; None for none
    effects : what else changes how participations go, in the order in which they are asked
    until_s : no round starts at or after this second, and an asynchronous one ends then if no update can come any more
    target_accuracy : the run ends after the first round whose evaluation reaches it; 0.8 or ``"80 %"``
    target : the same for any metric of the task, or its loss; of such a metric reports and summaries state the seconds
    """

    count: Whole
    policy: Annotated[RoundPolicy, Slot(POLICIES)] = Field(default_factory=lambda: POLICIES.make("wait-for-all"))
    late: Annotated[LateRule, Slot(LATE)] = Field(default_factory=lambda: LATE.make("cancel"))
    weights: Annotated[Weighting, Slot(WEIGHTINGS)] = BySamples()
    minimum_updates: Whole = 1
    refuse_nonfinite_updates: bool = False
    secure_aggregation: Annotated[SecureAggregation, Slot(SECURE_AGGREGATIONS)] | None = None
    edges: Edges | None = None
    faults: Faults | None = None
    effects: Annotated[tuple[Annotated[EffectSettings, Slot(EFFECTS)], ...], Field(strict=False)] = ()
    until_s: Positive[Seconds] | None = None
    target_accuracy: Accuracy | None = None
    target: Target | None = None


class Results(Settings):
    """What is measured, and how it is drawn.

    Attributes
    ----------
    evaluate_every : rounds between evaluations of the global model on the whole test set, or, where an algorithm
        gives clients models of their own, of these on local test samples; the last model and that at
        ``rounds.until_s`` are always evaluated, and so are the models before the first evaluation that reaches a
        target, if they are no more than the evaluations of the run
    evaluate_start : whether the first model is evaluated at time 0 too, so that curves begin there
    evaluate_clients : which evaluations are also made on the local test samples of each client: ``"never"``,
        ``"last"``, or a number n for the first one, each n-th after it, and the last one. The history then has the
        table ``client_evaluations``
    smoothing : window of the causal mean over evaluations in figures, whose axes say so; 1 for none. No number is
        smoothed. With a window the summary also has the time from which on as many evaluations reach the target
    target_accuracy : accuracy whose time the summary states, as 0.8 or ``"80 %"``
    audit : whether conservation of bits, time and energy is checked for every participation; a violation stops the
        run. The history then has the table ``accounts``
    noise_to_signal : whether the table of rounds states how much noise of privacy the updates have that it used
        Their trainings then run at the end of each round, not when a model is evaluated.
    """

    evaluate_every: Whole = 1
    evaluate_start: bool = True
    evaluate_clients: Annotated[Whole | Literal["never", "last"], BeforeValidator(_whole_or_word)] = "never"
    smoothing: Annotated[Whole, Bound(0, 10**6)] = 1
    target_accuracy: Accuracy = 0.8
    audit: bool = False
    noise_to_signal: bool = False


class ScenarioTables(Settings):
    """All tables of a scenario.

    Attributes
    ----------
    name : of the scenario, at most 100 characters; a run lies in ``runs/<name>`` by default
    seed : of all random streams
    crowd : how many clients there are, and where
    learning : what is learned from which data, or ``"none"`` for timing only
    privacy : budget and mechanism; None for none
    network : how long bits take
    devices : how long work takes, which clients are available, which drop out
    rounds : when a round is over
    selector : which clients take part
    results : what is measured
    """

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=100)]
    seed: Annotated[int, Field(ge=0), Bound(0, 2**63 - 1)] = 0
    crowd: Crowd
    learning: Annotated[LearnerSettings, Slot(LEARNERS)]
    privacy: Privacy | None = None
    network: Annotated[Network, Slot(NETWORKS)]
    devices: Devices = Field(default_factory=Devices)
    rounds: Rounds
    selector: Annotated[Stateful, Slot(SELECTORS)]
    results: Results = Field(default_factory=Results)
