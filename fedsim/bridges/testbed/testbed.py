"""The clock of a scenario for any training code, stepped round by round in the caller's own thread."""

import math
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fedsim.arrays import FloatArray
from fedsim.bridges.testbed.checks import Numbers, checked_evaluation, checked_report, checked_wait
from fedsim.bridges.testbed.cohorts import checked_cohort, checked_statement
from fedsim.bridges.testbed.columns import Arrival, RoundResult
from fedsim.bridges.testbed.recording import Recording
from fedsim.bridges.testbed.reported import Key, ReportedLearner
from fedsim.bridges.testbed.snapshots import nobody, snapshot
from fedsim.bridges.testbed.stated import Stated, StatedComputeTimes, StatedWorkload
from fedsim.bridges.testbed.stepping import Stepping
from fedsim.errors import StepError
from fedsim.history import History
from fedsim.rounds import ExpectedTimes, Progress, ServerContext
from fedsim.rounds.clients.cohort import CohortRun
from fedsim.rounds.server.decisions import Asked, Decisions, Wish
from fedsim.scenario import Scenario
from fedsim.selectors import Cohort, RoundView
from fedsim.simulation import Outside, Simulation


class Testbed:
    """Seconds for training code of your own: rounds are played on the network, devices and policy of a scenario.

    Nothing is trained here. A round is told which clients take part and how much they send and compute, and tells when
    each update arrives and which of them the server uses. The clock stands between two calls, and there are no threads.
    The same scenario and the same calls give the same tables, byte for byte.

    Parameters
    ----------
    scenario : Scenario, path of a TOML file, or mapping of tables
        Sizes of messages and numbers of samples are those of its ``learning`` table, where a call states no others;
        a model of its own is not trained. It has no ``rounds.edges``.
    out : path, optional
        Folder of the run; nothing is written by default.
    data_dir : path, optional
        Directory of real data sets, where the scenario names one.
    replace : bool
        Whether a run that the folder holds is thrown away.
    on_round : optional
        Called after every round with a `fedsim.rounds.Progress`.

    Raises
    ------
    ScenarioError
        If the scenario is not allowed.
    RunError
        If the folder cannot be used.

    Examples
    --------
    >>> tables = {
    ...     "name": "two-rounds",
    ...     "crowd": {"clients": 4},
    ...     "learning": {"kind": "none", "model_bits": 1e6, "samples_per_client": 100},
    ...     "network": {"kind": "fixed-rates", "downlink_bps": 1e6, "uplink_bps": 5e5},
    ...     "devices": {"compute": {"kind": "linear", "seconds_per_sample": 0.01}},
    ...     "rounds": {"count": 2, "policy": "wait-for-all"},
    ...     "selector": {"kind": "uniform", "cohort": 2},
    ... }
    >>> with Testbed(tables) as testbed:
    ...     while not testbed.over:
    ...         result = testbed.round([0, 3], up_bits=[1e6, 2e6])
    ...         print(result.client[result.arrivals], result.end_s, testbed.now_s)
    ...         testbed.report(accuracy=0.5, loss=1.0)
    """

    __test__: ClassVar[bool] = False  # pytest takes classes whose names begin with Test for tests

    def __init__(
        self,
        scenario: Scenario | str | Path | Mapping[str, object],
        out: str | Path | None = None,
        *,
        data_dir: str | Path | None = None,
        replace: bool = False,
        on_round: Callable[[Progress], None] | None = None,
    ) -> None:
        self.scenario = _scenario(scenario)
        if self.scenario.rounds.edges is not None:
            raise StepError(
                "rounds.edges: a testbed steps the rounds of one server; allowed: a scenario without edge servers"
            )
        self._decisions = Decisions()
        self._recording = None if out is None else Recording(out, self.scenario, replace=replace)
        self._on_round = on_round
        try:
            self._simulation = Simulation(
                self.scenario,
                data_dir=data_dir,
                store=False,
                on_round=self._after_round,
                recorder=None if self._recording is None else self._recording.recorder,
                outside=Outside(self._decisions, self._adapt),
            )
            if self._recording is not None:
                self._recording.begin(self._data_digest)
        except BaseException:
            if self._recording is not None:
                self._recording.close()
            raise
        traits = self._context.policy.traits
        self._concurrency = traits.concurrency
        self._stepping = Stepping(self._simulation, self._decisions)
        self._ended: list[tuple[CohortRun, int, float]] = []
        self._arrivals: deque[Arrival] = deque()
        self._latest: dict[int, Key] = {}
        self._selected: tuple[int, float, Cohort] | None = None
        self._sent_in = self._version = 0
        self._last: RoundResult | None = None
        self._expected: ExpectedTimes | None = None
        self._history: History | None = None

    def _adapt(self, context: ServerContext) -> ServerContext:
        """Return what a run depends on, with what is stated and reported in the place of what is learned."""
        clients, learner = context.clients, context.learner
        self._stated, self._learner = Stated(learner.samples.size), ReportedLearner(learner)
        self._data_digest = learner.data_digest
        masked = None if context.secure is None else context.secure.masked_bits
        self._context = replace(
            context,
            learner=self._learner,
            noise_to_signal=False,
            numbers_from_outside=True,
            clients=replace(
                clients,
                workload=StatedWorkload(learner, context.selector.needs, masked, self._stated),
                compute=StatedComputeTimes(clients.compute, self._stated),
            ),
        )
        return self._context

    def _after_round(self, progress: Progress) -> None:
        if self._recording is not None:
            self._recording.after_round(progress)
        if self._on_round is not None:
            self._on_round(progress)

    def __enter__(self) -> Self:
        """Return the testbed, which is finished at the end of the context."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Finish the run; after an error keep what has happened so far."""
        if error is None:
            self.finish()
        elif self._recording is not None and self._history is None:
            self._recording.fail(error)

    @property
    def now_s(self) -> float:
        """Present simulated time in seconds."""
        return self._stepping.now_s

    @property
    def over(self) -> bool:
        """Whether no further round can start; a round that was played cannot be reported on after this question."""
        return not self._arrivals and self._to_question() is None

    @property
    def in_flight(self) -> int:
        """How many clients were sent and have not delivered, as far as the server knows."""
        return self._decisions.server.in_flight

    @property
    def vacant(self) -> int:
        """Places of an asynchronous server that no client takes."""
        return max(0, self._places("vacant") - self.in_flight)

    @property
    def last(self) -> RoundResult | None:
        """The round that was played last; None before the first."""
        return self._last

    def view(self) -> RoundView:
        """Return what a server knows of its candidates now, as columns; copies that stay as they are.

        The columns are those that selectors see (`fedsim.selectors.RoundView`); `features` are always there: expected
        seconds of downlink, work and uplink, and samples. If no client can be reached, time passes until one can.
        """
        self._require_question("view")
        found = self._decisions.server.look(self._decisions.number)
        if found is None:
            return nobody(self._context.knowledge, self._decisions.number, self.now_s)
        return snapshot(found, self._features)

    def select(self) -> Cohort:
        """Return the clients that the scenario's selector takes now, with what it prescribes for them.

        The selector's question to clients, if it has one, takes its time. Asked again before the round is played, the
        answer is the same. At an asynchronous server these are clients for the vacant places; none if there are no
        candidates, or the selector takes none.
        """
        asked = self._require_question("select")
        number, server = self._decisions.number, self._decisions.server
        if asked is Asked.PLACES:
            if self._context.selector.probe is not None:
                raise StepError(
                    f"select: {self._context.selector.name} asks clients a question first, which a testbed does not "
                    "play at an asynchronous server; allowed: cohorts of your own, or another selector"
                )
            chosen = server.selected(number, self.vacant) if self.vacant else None
            return Cohort(np.zeros(0, dtype=np.int64)) if chosen is None else chosen
        if self._selected is not None and self._selected[:2] == (number, self.now_s):
            return self._selected[2]
        while True:
            self._stepping.answer(Wish.SELECTORS)
            if self._stepping.go_on() is None:
                raise self._over("select")
            if self._decisions.number == number:
                break
            number = self._decisions.number  # the server has crashed during the question
        found = self._decisions.take_selected()
        cohort = Cohort(np.zeros(0, dtype=np.int64)) if found is None else found
        self._selected = number, self.now_s, cohort
        return cohort

    def round(
        self,
        cohort: Cohort | ArrayLike,
        *,
        down_bits: ArrayLike | None = None,
        up_bits: ArrayLike | None = None,
        samples: ArrayLike | None = None,
        flops: ArrayLike | None = None,
        compute_s: ArrayLike | None = None,
    ) -> RoundResult:
        """Play one round with a cohort, and return when its updates have arrived and which of them are used.

        Parameters
        ----------
        cohort : ids of candidates, or a `Cohort` with weights, shares of work and the like
        down_bits, up_bits : sizes of the model and of an update, >= 0; the scenario's by default. Numbers that the
            selector asks for, and masks, are added
        samples : samples that each client passes through its model, >= 0; the scenario's by default
        flops : operations of each client's work, in the place of samples
        compute_s : seconds of each client's work, >= 0, in the place of the scenario's law

        Each is one number for all clients, or one for each in the order of the cohort.

        Raises
        ------
        StepError
            If the call is not allowed, before time passes.
        """
        if self._concurrency is not None:
            raise StepError(
                "round: the scenario has an asynchronous policy, which sends clients one by one; allowed: send and "
                "next_arrival"
            )
        self._require_question("round")
        run = self._checked("round", cohort)
        self._state("round", run, down_bits, up_bits, samples, flops, compute_s)
        before, self._selected = self._decisions.closed, None
        self._stepping.answer(run)
        self._stepping.go_on()
        self._stated.put(run.client, {})
        closed = self._decisions.closed
        if closed is None or closed is before:
            raise self._over("round")
        self._ended += self._decisions.take_ended()
        self._last = RoundResult.of_round(closed, self._ended)
        self._version = closed.version
        members = [(one, i) for one, i, _ in self._ended]
        if closed.own is not None:
            members += [(closed.own, i) for i in closed.own.everyone.tolist()]
        self._ended = []
        self._remember(members)
        return self._last

    def report(
        self,
        losses: Numbers | None = None,
        *,
        accuracy: float | None = None,
        loss: float | None = None,
        metrics: Mapping[str, float] | None = None,
        measured: Mapping[str, Numbers] | None = None,
    ) -> None:
        """Tell what your code knows of the round just played, before the next call.

        Parameters
        ----------
        losses : mean training loss of each client's update, in the order of the round's clients or by id; the selector
            is told of those that have arrived
        accuracy, loss, metrics : of the newest model, on test samples, for the table of evaluations. Before the first
            round, of the first model
        measured : other measurements by name, as ``losses``; see `fedsim.measurements.MEASUREMENTS`

        Raises
        ------
        StepError
            If no round was just played, or a value is not allowed.
        """
        last = self._last
        begun, reporting = self._stepping.begun, self._stepping.asked is Asked.REPORT
        of_updates = {} if measured is None else dict(measured)
        if losses is not None:
            of_updates["loss"] = losses
        if of_updates and not reporting and (self._concurrency is None or not begun):
            raise StepError("report: no round was just played; allowed: once after each round, before the next call")
        keys: list[tuple[Key, str, NDArray[Any]]] = []
        client = np.zeros(0, dtype=np.int64) if last is None else last.client
        for name, given in of_updates.items():
            for one, value in checked_report("report", name, given, client).items():
                if one in self._latest:
                    keys.append((self._latest[one], name, value))
        evaluation = checked_evaluation("report", accuracy, loss, metrics)
        if evaluation is not None:
            if begun and not reporting:
                raise StepError("report: accuracy: no round was just played; allowed: once after each round")
            self._learner.evaluation = evaluation
        for key, name, column in keys:
            self._learner.put(key, name, column)

    def send(
        self,
        clients: Cohort | ArrayLike,
        *,
        down_bits: ArrayLike | None = None,
        up_bits: ArrayLike | None = None,
        samples: ArrayLike | None = None,
        flops: ArrayLike | None = None,
        compute_s: ArrayLike | None = None,
    ) -> None:
        """Send clients now from the newest model, one by one, as an asynchronous server does.

        Parameters
        ----------
        clients : ids of candidates, or a `Cohort`; at most as many as places are vacant
        down_bits, up_bits, samples, flops, compute_s : as of `round`

        Raises
        ------
        StepError
            If the call is not allowed, before time passes.
        """
        places = self._places("send")
        self._require_question("send")
        cohort = self._checked("send", clients)
        if cohort.client.size > self.vacant:
            raise StepError(
                f"send: clients: {cohort.client.size} are not allowed, as {self.vacant} of {places} places are vacant; "
                "allowed: wait for an arrival, or a larger rounds.policy.concurrency"
            )
        if not cohort.client.size:
            return
        self._state("send", cohort, down_bits, up_bits, samples, flops, compute_s)
        self._decisions.server.send(cohort)
        self._stated.put(cohort.client, {})
        self._sent_in = self._decisions.number

    def next_arrival(self, within_s: float = math.inf, *, or_candidate: bool = False) -> Arrival | None:
        """Wait for the next update at an asynchronous server, or for a client that it gives up.

        Updates that arrive at one instant are returned one by one. With the last of them, `Arrival.closed` has the
        round that the server has closed then, if there are updates enough.

        Parameters
        ----------
        within_s : longest wait in simulated seconds
        or_candidate : whether the wait also ends when a client becomes a candidate for a vacant place

        Returns
        -------
        arrival : None if the wait has ended without one
        """
        self._places("next_arrival")
        limit_s = self.now_s + checked_wait("next_arrival", "within_s", within_s, 0.0)
        if not self._arrivals:
            self._require_question("next_arrival")
        while not self._arrivals:
            vacant, server = self.vacant, self._decisions.server
            server.leave_vacant(vacant)
            if not self.in_flight and not (or_candidate and server.look(self._decisions.number) is None):
                raise StepError(
                    "next_arrival: no client is in flight, so that nothing can arrive; allowed: send clients first, or "
                    "or_candidate = True while there is no candidate"
                )
            self._decisions.asked = None
            self._stepping.go_on(limit_s)
            self._collect()
            if self._arrivals:
                break
            if self._stepping.over:
                raise self._over("next_arrival")
            if self._stepping.asked is None:
                self._stepping.move_to(limit_s)
                self._decisions.asked = Asked.PLACES
                return None
            if or_candidate:
                return None
        return self._arrivals.popleft()

    def advance(self, until_s: float) -> tuple[Arrival, ...]:
        """Let simulated time pass up to an instant, and return what arrives meanwhile.

        Parameters
        ----------
        until_s : instant, not before now; one that is nearer than the start of the next round is passed
        """
        end_s = checked_wait("advance", "until_s", until_s, self.now_s)
        if end_s == math.inf:
            raise StepError("advance: until_s: inf is not allowed; it must be a finite instant")
        asked = self._require_question("advance")
        found: list[Arrival] = []
        if asked is Asked.COHORT:
            self._stepping.let_pass(end_s)
            new = self._decisions.take_ended()
            self._ended += new
            self._remember([(run, i) for run, i, _ in new])
            return tuple(Arrival.of(run, i, time_s, self._version) for run, i, time_s in new)
        while self._arrivals or (self.now_s < end_s and not self.over):
            arrival = self.next_arrival(max(0.0, end_s - self.now_s), or_candidate=True)
            if arrival is not None:
                found.append(arrival)
        return tuple(found)

    def finish(self) -> History:
        """End the run after the rounds that were played, write its folder and return its history.

        Clients in flight and updates that wait are lost. Called again, it returns the same history.
        """
        if self._history is not None:
            return self._history
        self._to_end()
        history = self._simulation.ended()
        self._history = history if self._recording is None else self._recording.finish(history)
        return self._history

    def _to_end(self) -> None:
        if not self._stepping.begun:
            self._to_question()
        if not self._stepping.over:
            asked, closed = self._stepping.asked, self._decisions.closed
            count = self.scenario.rounds.count
            if asked is Asked.REPORT and closed is not None:
                at_round: int | None = closed.number
            else:
                at_round = (
                    self._decisions.number
                    if asked is Asked.PLACES and self._sent_in == self._decisions.number
                    else None
                )
            played = 0 if closed is None else closed.number
            self._stepping.stop(at_round=at_round)
            if played < count:
                self._simulation.server.notes.append(f"the testbed was finished after round {played} of {count}")
        self._simulation.server.notes.append("the cohorts came from outside, by the calls of a testbed")

    def _to_question(self) -> Asked | None:
        """Go on until the server waits for clients; None if the run is over."""
        if self._history is not None:
            return None
        while self._stepping.asked in (None, Asked.REPORT) and not self._stepping.over:
            if self._stepping.asked is Asked.REPORT:
                self._stepping.answer(None)
            self._stepping.go_on()
            if self._concurrency is not None:
                self._collect()
        return self._stepping.asked

    def _require_question(self, call: str) -> Asked:
        """Go on until the server waits for clients, and return for what."""
        asked = self._to_question()
        if asked is None:
            raise self._over(call)
        return asked

    def _over(self, call: str) -> StepError:
        notes = self._simulation.server.notes
        why = notes[-1] if notes else f"{self.scenario.rounds.count} rounds, or what ends them in the scenario"
        return StepError(f"{call}: the run is over ({why}); allowed: finish")

    def _places(self, call: str) -> int:
        """Return how many clients an asynchronous server has in flight at most."""
        if self._concurrency is None:
            raise StepError(f"{call}: the scenario has no asynchronous policy; allowed: round")
        return self._concurrency

    def _checked(self, call: str, cohort: Cohort | ArrayLike) -> Cohort:
        """Return a cohort that may be sent now."""
        known = self._selected
        if known is not None and cohort is known[2] and known[:2] == (self._decisions.number, self.now_s):
            return known[2]
        view = self._decisions.server.look(self._decisions.number)
        name = "cohort" if call == "round" else "clients"
        return checked_cohort(f"{call}: {name}", cohort, view, self._learner.samples.size)

    def _state(self, call: str, cohort: Cohort, *given: ArrayLike | None) -> None:
        """State sizes, samples and seconds for the clients of a cohort."""
        down_bits, up_bits, samples, flops, compute_s = given
        stated = checked_statement(
            call,
            cohort.client.size,
            self._learner.flops_per_sample,
            down_bits=down_bits,
            up_bits=up_bits,
            samples=samples,
            flops=flops,
            compute_s=compute_s,
        )
        self._stated.put(cohort.client, stated)

    def _collect(self) -> None:
        """Take what has arrived at an asynchronous server, and the round that was closed with it."""
        new = self._decisions.take_ended()
        self._remember([(run, i) for run, i, _ in new])
        arrivals = [Arrival.of(run, i, time_s, self._version) for run, i, time_s in new]
        closed = self._decisions.closed
        if closed is not None and (self._last is None or closed.number > self._last.number):
            self._last = RoundResult.of_round(closed, ())
            if not arrivals:
                arrivals.append(Arrival.of_nobody(self.now_s))
            arrivals[-1] = replace(arrivals[-1], closed=self._last)
            self._version = self._last.version
        self._arrivals.extend(arrivals)

    def _remember(self, members: list[tuple[CohortRun, int]]) -> None:
        """Take note of the newest participation of each client."""
        for run, i in members:
            client = int(run.cohort.client[i])
            self._latest[client] = client, run.model.version, int(run.repeat[i])

    @property
    def _features(self) -> FloatArray:
        """What clients declare of themselves, shape (K, 4)."""
        if self._expected is None:
            clients = self._context.clients
            self._expected = ExpectedTimes.of(clients.links, clients.compute, clients.workload)
        return self._expected.features


def _scenario(given: Scenario | str | Path | Mapping[str, object]) -> Scenario:
    """Return the scenario that is given as such, as a file or as tables."""
    if isinstance(given, Scenario):
        return given
    if isinstance(given, Mapping):
        return Scenario(**dict(given))
    return Scenario.load(given)
