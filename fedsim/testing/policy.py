"""The contract check of policies, which say when a round is over."""

import copy
from collections.abc import Generator
from dataclasses import dataclass
from types import GeneratorType
from typing import Any, Final, cast

import numpy as np
from simpy import Environment, Event

from fedsim.arrays import FloatArray, IntArray
from fedsim.clock import TIE_ULPS
from fedsim.devices import Always, Dropout
from fedsim.errors import FedsimError
from fedsim.history import Recorder
from fedsim.history.outcomes import RoundEnd
from fedsim.learning import Learner
from fedsim.learning.timing_only import NoLearning
from fedsim.network.distributions import Zero
from fedsim.network.latency import LatencyNetwork
from fedsim.rounds.aggregation.rules import AggregationRule
from fedsim.rounds.clients.clients import Clients
from fedsim.rounds.effects.contract import Effects
from fedsim.rounds.effects.leaving import Vanishing
from fedsim.rounds.policies.contracts import RoundPolicy, Running
from fedsim.rounds.policies.round import PastRounds, Round
from fedsim.rounds.policies.server_port import ServerPort, ServerTraits
from fedsim.rounds.run import Run
from fedsim.rounds.server.asynchronous import server_of
from fedsim.rounds.server.context import RoundRules, ServerContext
from fedsim.rounds.server.rows import Rows
from fedsim.rounds.server.view import Knowledge
from fedsim.rounds.workload import Workload
from fedsim.run_setup import RunSetup
from fedsim.selectors import Cohort, Reports, RoundView, SelectorPort
from fedsim.streams import Streams
from fedsim.testing.examination import Examination, alike

_HORIZON_S: Final = 1e9
_ENDED: Final = (RoundEnd.ENOUGH, RoundEnd.DEADLINE)


@dataclass(frozen=True)
class _Trial:
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
    * end each round, also one with lost clients where its traits say that it tolerates losses, and no later than its
      time limit,
    * return from `wait` what has ended the round: `RoundEnd.DEADLINE` where no client has delivered,
    * run the same rounds again when it is used a second time.

    Parameters
    ----------
    policy : RoundPolicy

    Raises
    ------
    ContractError
        Naming the policy, the fault, and the trial and round in which it shows.

    Examples
    --------
    >>> from fedsim.rounds import Deadline
    >>> check_policy(Deadline(deadline_s=2.0))
    """
    part = Examination(policy)
    part.law(isinstance(policy, RoundPolicy), "it is no policy; it must derive from fedsim.rounds.RoundPolicy")
    _check_traits(part, policy.traits)
    _check_aggregation(part, policy)
    for trial in _TRIALS:
        if trial.lost and not policy.traits.tolerates_losses:
            continue
        if trial.lost == len(trial.work_s) and policy.traits.concurrency is not None:
            continue
        first, second = (_Play(policy, trial).ends() for _ in range(2))
        for number, (one, other) in enumerate(zip(first, second, strict=True), start=1):
            part.place = f"in the trial with {trial.name}, round {number}"
            ends = "at {} s ({!r}) when the policy is used a second time, and at {} s ({!r}) at first"
            fault = (
                f"wait: the round ends {ends.format(*other, *one)}; what it knows of past rounds must come from `past`"
            )
            part.law(one == other, fault)


def _check_traits(part: Examination, traits: object) -> None:
    if not isinstance(traits, ServerTraits):
        raise part.fault(f"traits: {traits!r} is not allowed; it must be ServerTraits")
    for option in ("cohort_size", "concurrency", "buffer_size"):
        value = vars(traits)[option]
        counts = value is None or (isinstance(value, int) and not isinstance(value, bool) and value >= 1)
        part.law(counts, f"traits.{option}: {value!r} is not allowed; it must be at least 1, or None")
    give_up_s = traits.give_up_after_s
    part.law(give_up_s > 0, f"traits.give_up_after_s: {give_up_s!r} is not allowed; it must be > 0")
    alone = traits.concurrency is None or traits.overlaps_rounds
    part.law(alone, "traits: overlaps_rounds must be True with a concurrency")


def _check_aggregation(part: Examination, policy: RoundPolicy) -> None:
    learner = _learner(3)
    one, other = (part.ask("aggregation", policy.aggregation, learner) for _ in range(2))
    fault = (
        f"aggregation returned {one!r}; it must be None, or derive from fedsim.rounds.aggregation.rules.AggregationRule"
    )
    part.law(one is None or isinstance(one, AggregationRule), fault)
    part.law(one is None or one is not other, "aggregation returned the same rule twice; runs must not share one")


class _Play(Examination):
    def __init__(self, policy: RoundPolicy, trial: _Trial) -> None:
        super().__init__(policy)
        self.policy, self.trial = policy, trial
        self.traits = policy.traits
        self._ends: list[tuple[float, RoundEnd]] = []
        self.env = Environment()
        clients, streams = len(trial.work_s), Streams(0)
        setup = RunSetup.at(np.zeros((clients, 2)), streams)
        availability, learner = Always().build(setup), _learner(clients)
        effects = Effects([Vanishing(_Losses(trial.lost))])
        context = ServerContext(
            clients=Run(
                self.env,
                setup,
                LatencyNetwork(downlink=Zero(), uplink=Zero()).build(setup),
                _WorkTimes(trial),
                availability,
                Workload(learner),
                effects,
            ),
            effects=effects,
            streams=streams,
            availability=availability,
            learner=learner,
            selector=SelectorPort.of(_LowestIds()),
            knowledge=Knowledge(learner.samples, None),
            rules=RoundRules(policy=cast(RoundPolicy, self)),
        )
        rows = Rows(Recorder("check"), context)
        self._server = server_of(context)(self.env, context, Clients(context.clients), rows)

    def ends(self) -> list[tuple[float, RoundEnd]]:
        horizon = self.env.timeout(_HORIZON_S)
        horizon.callbacks = [self._refuse_to_wait]
        try:
            self.env.run(until=self.env.process(self._serve()))
        except FedsimError:
            raise
        except Exception as error:
            raise self.failure("wait", error) from error
        return self._ends

    def _serve(self) -> Generator[Event, Any, None]:
        for number in range(1, self.trial.rounds + 1):
            self.place = f"in the trial with {self.trial.name}, round {number}"
            yield from self._server.run_round(number, self._server.next_start_s(number))

    # What a server asks of its policy.

    def time_limit_s(self, past: PastRounds) -> float:
        asked = [copy.deepcopy(past) for _ in range(2)]
        limits_s = [self.policy.time_limit_s(one) for one in asked]
        sound = limits_s[0] == limits_s[1] >= 0
        self.law(sound, f"time_limit_s returned {limits_s} for the same past; it must be one number >= 0, or inf")
        self.law(alike(asked, [past, past]), "time_limit_s changed the past rounds that it was given")
        return limits_s[0]

    def aggregation(self, learner: Learner) -> AggregationRule | None:
        return self.policy.aggregation(learner)

    def wait(self, server: ServerPort, round_: Round) -> Running:
        """Wait as the policy does, and check how the round ends."""
        began_s, running = self.env.now, self.policy.wait(server, round_)
        self.law(isinstance(running, GeneratorType), f"wait returned {running!r}; it must be a generator")
        ended_by: RoundEnd = yield from running
        ends, own = ended_by in _ENDED, round_.cohort_run
        self.law(ends, f"wait returned {ended_by!r}; it must be RoundEnd.ENOUGH or RoundEnd.DEADLINE")
        waited_s = self.env.now - (began_s if own is None else own.participations.start_s)
        in_time = waited_s <= round_.time_limit_s + TIE_ULPS * float(np.spacing(self.env.now))
        self.law(in_time, f"wait: the round lasted {waited_s} s; time_limit_s says at most {round_.time_limit_s} s")
        self.law(
            self.trial.lost < len(self.trial.work_s) or ended_by == RoundEnd.DEADLINE,
            "wait: the round ended as enough, though no client had delivered; a deadline belongs into time_limit_s, or "
            "is made with Round.limit",
        )
        self._ends.append((self.env.now, ended_by))
        return ended_by

    def _refuse_to_wait(self, _: Event) -> None:
        why = " though traits.tolerates_losses is True" if self.trial.lost else ""
        raise self.fault(f"wait: the round never ended{why}")


class _LowestIds:
    """Selects all candidates, or those with the lowest ids if the server asks for fewer."""

    def select(self, view: RoundView, rng: np.random.Generator) -> Cohort:
        return Cohort(view.client[: view.wanted])

    def observe(self, reports: Reports) -> None:
        return


class _WorkTimes:
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


def _learner(clients: int) -> Learner:
    return NoLearning(model_bits=1.0, samples_per_client=10).build(RunSetup(clients, Streams(0)))
