"""The contract check of effects."""

import math
from typing import Final

import numpy as np
from simpy import Environment

from fedsim.arrays import FloatArray, IntArray
from fedsim.devices import Always
from fedsim.history.outcomes import PHASES, Outcome
from fedsim.learning import NoLearning
from fedsim.network.distributions import Constant
from fedsim.network.latency import LatencyNetwork
from fedsim.rounds.clients.clients import Clients
from fedsim.rounds.clients.participations import Participations
from fedsim.rounds.effects.contract import Effect, Effects, Limit, Never
from fedsim.rounds.effects.kinds import EffectSettings
from fedsim.rounds.plan import Look, Plan
from fedsim.rounds.run import Run
from fedsim.rounds.workload import Workload
from fedsim.run_setup import RunSetup
from fedsim.streams import Streams
from fedsim.testing.examination import Examination, at_least_two

_DOWN_S, _UP_S, _BITS, _SAMPLES = 1.0, 2.0, 1e6, 50.0
_ROUNDS: Final = 3


def check_effect(settings: EffectSettings, *, clients: int = 8, seed: int = 0) -> None:
    """Check that an effect keeps the contract of `fedsim.rounds.Effect`; return None if it does.

    The effect is built for a crowd whose downlinks take 1 s, whose work takes up to 3 s and whose uplinks take 2 s, and
    some cohorts are sent one after the other. The effect must

    * leave the clients, the random key and the start of a cohort as they are, and sizes and work positive,
    * state waits, limits and ends as numbers of at least 0, one for all members or one for each, never NaN,
    * say of one member what it says of the same member among others,
    * say the same of the same cohort in a second run with the same seed,
    * state with `free_s` an instant for each client, or None, and follow it with `tracker`,
    * show columns, and state joules, with a number for each client,
    * say with a `Never`, or with None, why no client is free again,
    * end no participation unless ``may_end`` says that it may.

    Parameters
    ----------
    settings : as they stand in ``rounds.effects``
    clients : number of clients, at least 2
    seed : seed of the random streams, >= 0

    Raises
    ------
    ContractError
        Naming the effect, the fault, and the cohort and the phase at which it shows.
    ValueError
        If ``clients`` is below 2.

    Examples
    --------
    >>> from fedsim.rounds import EFFECTS
    >>> check_effect(EFFECTS.make({"kind": "duty-cycle", "share": 0.1}))
    """
    at_least_two(clients=clients)
    first, again = (_Trial(settings, clients, seed).ends() for _ in range(2))
    trial = Examination(settings)
    trial.law(first == again, "build: another run with the same seed ends otherwise; draws come from the streams given")


class _Trial(Examination):
    def __init__(self, settings: EffectSettings, clients: int, seed: int) -> None:
        super().__init__(settings)
        self._clients, self._may_end = clients, settings.may_end
        setup = RunSetup.at(np.zeros((clients, 2)), Streams(seed))
        self._env = Environment()
        links = LatencyNetwork(downlink=Constant(value_s=_DOWN_S), uplink=Constant(value_s=_UP_S))
        learner = NoLearning(model_bits=_BITS, samples_per_client=int(_SAMPLES)).build(setup)
        run = Run(
            self._env,
            setup,
            links.build(setup),
            _Work(),
            Always().build(setup),
            Workload(learner),
        )
        self._effect = self.ask("build", lambda: settings.build(run))
        self.law(isinstance(self._effect, Effect), f"build returned {type(self._effect).__name__}, not an Effect")
        run.effects = Effects([_Examined(self, self._effect)])
        self._run = Clients(run)

    def ends(self) -> list[tuple[float, ...]]:
        found = []
        for number in range(1, _ROUNDS + 1):
            self.place = f"cohort {number}"
            size = self._clients if number % 2 else self._clients // 2
            client = self._free(np.arange(self._clients - size, self._clients))
            going = Participations(self._run, self._plan(client, number))
            self._env.run(until=self._env.now + 1e6)
            self._check(going, client, number)
            going.settle()
            found.append(tuple(going.ended_s.tolist()))
        return found

    def _free(self, client: IntArray) -> IntArray:
        """Return the clients that may be selected now, and examine what the effect declares of them."""
        now_s, effect = float(self._env.now), self._effect
        for name, column in self.ask("shows", effect.shows).items():
            values = np.asarray(self.ask("shows", column, client, now_s))
            fault = f"shows: {name} has the shape {values.shape}; allowed: ({client.size},), a number for each client"
            self.law(values.shape == client.shape, fault)
        costs_j = np.asarray(self.ask("participation_j", effect.participation_j, client, *_seconds(client.size)))
        paid = costs_j.shape == client.shape and bool(np.all(costs_j >= 0))
        self.law(paid, f"participation_j returned {costs_j!r}; allowed: joules >= 0 for each of {client.size} clients")
        never = self.ask("never", effect.never, now_s)
        self.law(never is None or isinstance(never, Never), f"never returned {never!r}; allowed: a Never, or None")
        free_s = self.ask("free_s", effect.free_s, client, now_s)
        if free_s is None:
            return client
        fits = np.shape(free_s) == client.shape and not np.isnan(free_s).any()
        self.law(fits, f"free_s returned {free_s!r}; allowed: an instant for each of {client.size} clients, or None")
        tracker = self.ask("tracker", effect.tracker, client)
        self.ask("tracker", tracker.update, now_s, 1)
        alike = np.array_equal(tracker.available, free_s <= now_s)
        self.law(alike, f"tracker says {tracker.available} where free_s says {free_s} at {now_s} s")
        return client[free_s <= now_s]

    def _plan(self, client: IntArray, number: int) -> Plan:
        samples = np.full(client.size, _SAMPLES)
        return Plan(
            client,
            number,
            number,
            Look(float(self._env.now), number),
            bits=(_BITS, _BITS),
            samples=samples,
            compute_s=_Work().duration_s(client, number, samples),
        )

    def _check(self, going: Participations, client: IntArray, number: int) -> None:
        plan = going.plan
        self.law(bool(np.array_equal(plan.client, client)), "plan changed the clients of a cohort")
        self.law((plan.number, plan.draw) == (number, number), "plan changed the number or the random key of a cohort")
        dropped = plan.outcome == Outcome.DROPPED
        self.law(self._may_end or not dropped.any(), "limit or passed has ended a participation, and may_end is False")
        unended = np.isnan(going.ended_s)
        self.law(not unended.any(), "wait_s lets a client wait for more than 1e6 s; allowed: an end by limit")
        sizes = [np.asarray(bits, dtype=np.float64) for bits in plan.bits]
        fit = all(bool(np.all((bits >= 0) & np.isfinite(bits))) for bits in (*sizes, plan.compute_s))
        self.law(fit, "plan or due made a size or a duration that is negative or not finite")


def _seconds(clients: int) -> tuple[FloatArray, FloatArray]:
    """Return seconds of the phases, shape (3, n), and those on the air, shape (2, n)."""
    return np.tile([[_DOWN_S], [2.0], [_UP_S]], clients), np.tile([[_DOWN_S], [_UP_S]], clients)


class _Examined(Effect):
    def __init__(self, trial: Examination, effect: Effect) -> None:
        self._trial, self._effect = trial, effect
        self.phases, self.starts = effect.phases, effect.starts  # type: ignore[misc]

    def begin(self, run: Run) -> None:
        self._trial.ask("begin", self._effect.begin, run)

    def plan(self, plan: Plan) -> None:
        self._trial.ask("plan", self._effect.plan, plan)

    def due(self, plan: Plan, phase: int, members: IntArray | int) -> None:
        self._trial.ask("due", self._effect.due, plan, phase, members)

    def settle(self, plan: Plan, members: IntArray) -> None:
        self._trial.ask("settle", self._effect.settle, plan, members)

    def wait_s(self, plan: Plan, phase: int, members: IntArray | int) -> tuple[FloatArray | float, FloatArray | float]:
        waits_s = self._trial.ask("wait_s", self._effect.wait_s, plan, phase, members)
        for wait_s in waits_s:
            self._numbers("wait_s", phase, members, wait_s)
        if isinstance(members, np.ndarray):
            for k, i in enumerate(members.tolist()):
                self._alike("wait_s", phase, k, waits_s, self._effect.wait_s(plan, phase, i))
        return waits_s

    def limit(self, plan: Plan, phase: int, members: IntArray | int) -> Limit | None:
        limit = self._trial.ask("limit", self._effect.limit, plan, phase, members)
        if limit is None:
            return None
        self._trial.law(isinstance(limit, Limit), f"limit returned {type(limit).__name__}, not a Limit or None")
        numbers, left_s = limit[:-1], limit.left_s
        self._trial.law(left_s is None or callable(left_s), f"limit returned left_s = {left_s!r}; allowed: a function")
        for values in numbers:
            self._numbers("limit", phase, members, values, infinite=True)
        if isinstance(members, np.ndarray):
            for k, i in enumerate(members.tolist()):
                self._alike("limit", phase, k, numbers, (self._effect.limit(plan, phase, i) or Limit())[:-1])
        return limit

    def passed(self, plan: Plan, phase: int, members: IntArray | int) -> np.ndarray | np.bool_ | None:
        ends = self._trial.ask("passed", self._effect.passed, plan, phase, members)
        wanted = np.shape(members)
        fits = ends is None or (np.shape(ends) == wanted and np.asarray(ends).dtype == np.bool_)
        self._trial.law(fits, f"passed returned {ends!r}; allowed: flags of the shape of the members, or None")
        return ends

    def _numbers(
        self, member: str, phase: int, members: IntArray | int, values: object, *, infinite: bool = False
    ) -> None:
        array = np.asarray(values, dtype=np.float64)
        shaped = array.shape in ((), np.shape(members))
        known = shaped and bool(np.all((array >= 0) & (infinite | np.isfinite(array))))
        self._trial.law(
            known,
            f"{member} returned {values!r} for {np.size(members)} member(s) in {PHASES[phase]}; allowed: numbers >= 0, "
            "one for all or one for each",
        )

    def _alike(self, member: str, phase: int, k: int, many: tuple[object, ...], one: tuple[object, ...]) -> None:
        for values, value in zip(many, one, strict=True):
            among = np.asarray(values, dtype=np.float64)
            found = float(among if among.ndim == 0 else among[k])
            alone = float(np.max(np.asarray(value, dtype=np.float64)))
            same = found == alone or math.isclose(found, alone, rel_tol=1e-9)
            fault = f"{member} says {alone} of a member alone and {found} of it among others in {PHASES[phase]}"
            self._trial.law(same, fault)


class _Work:
    def duration_s(self, client: IntArray, draw: int, samples: FloatArray) -> FloatArray:
        work_s: FloatArray = 1.0 + (client % 3).astype(np.float64)
        return work_s

    def expected_s(self, samples: FloatArray) -> FloatArray:
        return np.full(samples.shape, 2.0)
