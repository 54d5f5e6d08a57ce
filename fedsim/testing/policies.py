"""The contract check of policies, which say when a round is over."""

import copy
import math
from collections.abc import Callable, Generator
from dataclasses import dataclass
from types import GeneratorType
from typing import Any, Final, cast

import numpy as np
from simpy import Environment, Event

from fedsim.arrays import FloatArray, IntArray
from fedsim.clock import TIE_ULPS
from fedsim.devices import Always, Dropout
from fedsim.errors import ContractError, FedsimError
from fedsim.history import Recorder
from fedsim.history.outcomes import RoundEnd
from fedsim.learning import Learner
from fedsim.learning.timing_only import NoLearning
from fedsim.network.contracts import Links
from fedsim.rounds.aggregation.rules import AggregationRule
from fedsim.rounds.clients.assignment import Workload
from fedsim.rounds.clients.cohort import CohortRun
from fedsim.rounds.clients.context import ClientContext
from fedsim.rounds.clients.dispatch import Dispatcher
from fedsim.rounds.policies.contracts import RoundPolicy, Running, ServerPort, ServerTraits
from fedsim.rounds.policies.round import PastRounds, Round
from fedsim.rounds.server.context import ServerContext
from fedsim.rounds.server.coordinator import Coordinator
from fedsim.rounds.server.knowledge import Knowledge
from fedsim.rounds.server.round_log import RoundLog
from fedsim.selectors import Cohort, Reports, RoundView, SelectorPort
from fedsim.streams import Streams

_HORIZON_S: Final = 1e9
_ENDED: Final = (RoundEnd.ENOUGH, RoundEnd.DEADLINE)


@dataclass(frozen=True)
class _Trial:
    """A small crowd.

    Attributes
    ----------
    name : for messages
    work_s : duration of each client's work, shape (K,)
    lost : how many clients, those with the lowest ids, never deliver
    varies : whether durations differ from one participation to the next
    rounds : number of rounds
    """

    name: str
    work_s: tuple[float, ...]
    lost: int = 0
    varies: bool = False
    rounds: int = 4


_TRIALS: Final = (
    _Trial("clients of different speed", (1.0, 2.0, 3.0, 4.0, 5.0, 6.0)),
    _Trial("clients that deliver at one instant", (2.0,) * 6),
    _Trial("one client", (3.0,)),
    _Trial("durations that change", (0.5, 1.5, 2.5, 3.5, 0.1), varies=True, rounds=12),
    _Trial("a client that is lost", (1.0, 2.0, 3.0, 4.0, 5.0, 6.0), lost=1),
    _Trial("clients that are all lost", (1.0, 2.0, 3.0), lost=3),
)


def check_policy(policy: RoundPolicy) -> None:
    """Check that a policy keeps the contract of `fedsim.rounds.RoundPolicy`; return None if it does.

    A server runs rounds under the policy, with clients that all deliver or of which some are lost. The policy must

    * state `ServerTraits` with sizes of at least 1 and times above 0,
    * answer with `time_limit_s` the same number, >= 0, to the same past rounds, and leave these alone,
    * return from `aggregation` None, or a new rule at each call, since a rule belongs to one run,
    * send clients, and no more at a time than its traits state,
    * end each round, also one with lost clients where its traits say that it tolerates losses, and no later than its
      time limit,
    * return from `run` what has ended the round: `RoundEnd.DEADLINE` where no client has delivered,
    * run the same rounds again when it is used a second time.

    Parameters
    ----------
    policy : RoundPolicy

    Raises
    ------
    ContractError
        Naming the policy, the fault, and the trial and round in which it shows.
    """
    name = type(policy).__name__
    if not isinstance(policy, RoundPolicy):
        raise ContractError(f"{name} is no policy; it must derive from fedsim.rounds.RoundPolicy")
    _check_traits(name, policy.traits)
    _check_aggregation(name, policy)
    for trial in _TRIALS:
        if trial.lost and not policy.traits.tolerates_losses:
            continue
        if trial.lost == len(trial.work_s) and policy.traits.concurrency is not None:
            continue
        first, second = (_Play(policy, trial).ends() for _ in range(2))
        for number, (one, other) in enumerate(zip(first, second, strict=True), start=1):
            if one != other:
                raise ContractError(
                    f"{name}: round {number} ends at {other[0]} s ({other[1].name.lower()}) when the policy is used a "
                    f"second time, and at {one[0]} s ({one[1].name.lower()}) at first (in the trial with "
                    f"{trial.name}); what it knows of past rounds must come from `past`"
                )


def _check_traits(name: str, traits: object) -> None:
    if not isinstance(traits, ServerTraits):
        raise ContractError(f"{name}.traits: {traits!r} is not allowed; it must be ServerTraits")
    for option in ("cohort_size", "concurrency", "buffer_size"):
        value = vars(traits)[option]
        if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
            raise ContractError(f"{name}.traits.{option}: {value!r} is not allowed; it must be at least 1, or None")
    if not traits.give_up_after_s > 0:
        raise ContractError(f"{name}.traits.give_up_after_s: {traits.give_up_after_s!r} is not allowed; it must be > 0")
    if traits.concurrency is not None and not traits.overlaps_rounds:
        raise ContractError(f"{name}.traits: overlaps_rounds must be True with a concurrency")


def _check_aggregation(name: str, policy: RoundPolicy) -> None:
    learner = _learner(3)
    rules = [policy.aggregation(learner) for _ in range(2)]
    for rule in rules:
        if rule is not None and not isinstance(rule, AggregationRule):
            raise ContractError(
                f"{name}.aggregation returned {rule!r}; it must be None, or derive from "
                "fedsim.rounds.aggregation.rules.AggregationRule"
            )
    if rules[0] is not None and rules[0] is rules[1]:
        raise ContractError(f"{name}.aggregation returned the same rule twice; runs must not share one")


class _Play:
    """One run of a trial, which watches the policy."""

    def __init__(self, policy: RoundPolicy, trial: _Trial) -> None:
        self.policy, self.trial, self.name = policy, trial, type(policy).__name__
        self.traits = policy.traits
        self._number = 0
        self._ends: list[tuple[float, RoundEnd]] = []
        self.env = Environment()
        clients, streams, availability = len(trial.work_s), Streams(0), Always().build(len(trial.work_s), Streams(0))
        learner = _learner(clients)
        context = ServerContext(
            clients=ClientContext(
                streams=streams,
                links=_NoTransferTime(clients),
                compute=_WorkTimes(trial),
                availability=availability,
                dropout=_Losses(trial.lost),
                workload=Workload(learner),
                may_leave=False,
            ),
            streams=streams,
            availability=availability,
            learner=learner,
            selector=SelectorPort.of(_LowestIds()),
            policy=cast(RoundPolicy, self),
            knowledge=Knowledge(learner.samples, None),
        )
        log = RoundLog(Recorder("check"), context, None)
        self._coordinator = Coordinator(self.env, context, Dispatcher(self.env, context.clients), log)

    def ends(self) -> list[tuple[float, RoundEnd]]:
        """Return when each round has ended, and by what."""
        horizon = self.env.timeout(_HORIZON_S)
        horizon.callbacks = [self._refuse_to_wait]
        try:
            self.env.run(until=self.env.process(self._serve()))
        except FedsimError:
            raise
        except Exception as error:
            raise self._fault(f"failed with {type(error).__name__}: {error}") from error
        return self._ends

    def _serve(self) -> Generator[Event, Any, None]:
        for number in range(1, self.trial.rounds + 1):
            self._number = number
            yield from self._coordinator.run_round(number, self._coordinator.next_start_s(number))

    # What a server asks of its policy.

    def time_limit_s(self, past: PastRounds) -> float:
        """Return the policy's limit, checked."""
        asked = [copy.deepcopy(past) for _ in range(2)]
        limits_s = [self.policy.time_limit_s(one) for one in asked]
        if limits_s[0] != limits_s[1] or math.isnan(limits_s[0]) or limits_s[0] < 0:
            raise self._fault(f"time_limit_s returned {limits_s} for the same past; it must be one number >= 0, or inf")
        if any(not _alike(one, past) for one in asked):
            raise self._fault("time_limit_s changed the past rounds that it was given")
        return limits_s[0]

    def aggregation(self, learner: Learner) -> AggregationRule | None:
        """Return the policy's rule."""
        return self.policy.aggregation(learner)

    def run(self, server: ServerPort, round_: Round) -> Running:
        """Run the policy's round, and check how it ends."""
        began_s, port = self.env.now, _WatchedPort(server, self._fault, self.traits)
        running = self.policy.run(cast(ServerPort, port), round_)
        if not isinstance(running, GeneratorType):
            raise self._fault(f"run returned {running!r}; it must be a generator")
        ended_by: RoundEnd = yield from running
        if ended_by not in _ENDED:
            raise self._fault(f"run returned {ended_by!r}; it must be RoundEnd.ENOUGH or RoundEnd.DEADLINE")
        own = round_.cohort_run
        if own is None and not server.in_flight and not server.buffered:
            raise self._fault("run sent no client")
        waited_s = self.env.now - (began_s if own is None else own.participations.start_s)
        if waited_s > round_.time_limit_s + TIE_ULPS * float(np.spacing(self.env.now)):
            raise self._fault(f"the round lasted {waited_s} s; time_limit_s says at most {round_.time_limit_s} s")
        if self.trial.lost == len(self.trial.work_s) and ended_by == RoundEnd.ENOUGH:
            raise self._fault(
                "the round ended as enough, though no client had delivered; a deadline belongs into time_limit_s, or "
                "is made with Round.limit"
            )
        self._ends.append((self.env.now, ended_by))
        return ended_by

    def _refuse_to_wait(self, _: Event) -> None:
        why = " though traits.tolerates_losses is True" if self.trial.lost else ""
        raise self._fault(f"the round never ended{why}")

    def _fault(self, what: str) -> ContractError:
        return ContractError(f"{self.name}: {what} (in the trial with {self.trial.name}, round {self._number})")


class _WatchedPort:
    """A server that refuses what the policy's traits exclude."""

    def __init__(self, server: ServerPort, fault: Callable[[str], ContractError], traits: ServerTraits) -> None:
        self.env, self._server, self._fault, self._traits = server.env, server, fault, traits

    @property
    def buffered(self) -> int:
        return self._server.buffered

    @property
    def in_flight(self) -> int:
        return self._server.in_flight

    def select(self, round_: Round, cohort_size: int | None) -> Generator[Event, Any, Cohort | None]:
        if cohort_size != self._traits.cohort_size:
            raise self._fault(
                f"select was called for {cohort_size} clients; traits.cohort_size is {self._traits.cohort_size}"
            )
        return (yield from self._server.select(round_, cohort_size))

    def dispatch(self, cohort: Cohort, round_: Round) -> CohortRun:
        if round_.cohort_run is not None:
            raise self._fault("a second cohort was sent in one round; use refill to send clients one by one")
        return self._server.dispatch(cohort, round_)

    def refill(self, round_: Round, concurrency: int) -> bool:
        if concurrency != self._traits.concurrency:
            most = self._traits.concurrency
            raise self._fault(f"refill was called for {concurrency} clients; traits.concurrency is {most}")
        return self._server.refill(round_, concurrency)

    def cancel_older_than(self, lag: int) -> Generator[Event, Any, None]:
        yield from self._server.cancel_older_than(lag)

    def buffered_clients(self) -> IntArray:
        return self._server.buffered_clients()

    def next_arrival(self) -> Event:
        return self._server.next_arrival()


class _LowestIds:
    """Selects all candidates, or those with the lowest ids if the server asks for fewer."""

    def select(self, view: RoundView, rng: np.random.Generator) -> Cohort:
        return Cohort(view.client[: view.wanted])

    def observe(self, reports: Reports) -> None:
        return


class _WorkTimes:
    """Work that takes what the trial says."""

    def __init__(self, trial: _Trial) -> None:
        self._work_s, self._varies = np.array(trial.work_s), trial.varies

    def duration_s(self, client: IntArray, draw: int, samples: FloatArray) -> FloatArray:
        factor = 1.0 + 0.4 * ((draw * 7 + client) % 5) if self._varies else 1.0
        return self._work_s[client] * factor

    def expected_s(self, samples: FloatArray) -> FloatArray:
        return self._work_s


class _Losses(Dropout):
    """Clients with the lowest ids leave before their work is done."""

    def __init__(self, count: int) -> None:
        self._count = count

    def time_to_dropout_s(
        self, client: IntArray, draw: int, streams: Streams, phases_s: FloatArray | None = None
    ) -> FloatArray:
        return np.where(client < self._count, 0.05, np.inf)


class _NoTransferTime(Links):
    """Links on which transfers take no time."""

    def __init__(self, clients: int) -> None:
        self._zeros = np.zeros(clients)

    def downlink_s(self, client: IntArray, draw: int, start_s: FloatArray, bits: float) -> FloatArray:
        return self._zeros[client]

    def uplink_s(self, client: IntArray, draw: int, start_s: FloatArray, bits: float) -> FloatArray:
        return self._zeros[client]

    def expected_downlink_s(self, bits: float) -> FloatArray:
        return self._zeros

    def expected_uplink_s(self, bits: float) -> FloatArray:
        return self._zeros


def _learner(clients: int) -> Learner:
    return NoLearning(model_bits=1.0, samples_per_client=10).build(clients, Streams(0))


def _alike(one: PastRounds, other: PastRounds) -> bool:
    return (
        one.rounds_s == other.rounds_s
        and one.deadline_s == other.deadline_s
        and np.array_equal(one.picked, other.picked)
        and len(one.durations_s) == len(other.durations_s)
        and all(map(np.array_equal, one.durations_s, other.durations_s))
    )
