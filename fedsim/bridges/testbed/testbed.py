"""The clock of a scenario for any training code, stepped round by round in the caller's own thread."""

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fedsim.answers import ShortTraceback
from fedsim.bridges.testbed.arrivals import Arrivals
from fedsim.bridges.testbed.checks import Numbers, checked_evaluation, checked_report, checked_wait, checked_weights
from fedsim.bridges.testbed.columns import Arrival, RoundResult, arrival_of, round_of
from fedsim.bridges.testbed.outside_run import OutsideRun
from fedsim.bridges.testbed.reported import Key
from fedsim.errors import StepError
from fedsim.history import History
from fedsim.history.first_sight import FirstSight
from fedsim.rounds import Progress
from fedsim.rounds.clients.cohort import CohortRun
from fedsim.rounds.server.outside import Asked
from fedsim.scenario import Scenario
from fedsim.selectors import Cohort, RoundView


class Testbed(FirstSight):
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
    >>> second = {"kind": "constant", "value_s": 1.0}
    >>> tables = {
    ...     "name": "two-rounds",
    ...     "crowd": {"clients": 4},
    ...     "learning": "none",
    ...     "network": {"kind": "latency", "downlink": second, "uplink": second, "uplink_factor": [1.0, 2.0, 3.0, 4.0]},
    ...     "devices": {"compute": "zero"},
    ...     "rounds": {"count": 2, "policy": {"kind": "deadline", "deadline_s": 3.5}},
    ...     "selector": {"kind": "uniform", "cohort": 2},
    ... }
    >>> with Testbed(tables) as testbed:
    ...     result = testbed.round([3, 0], compute_s=0.5)
    ...     testbed.report(losses=[0.7, 0.9], accuracy=0.5)
    >>> result.outcome.tolist(), result.end_s.tolist(), testbed.now_s
    (['late', 'delivered'], [3.5, 2.5], 3.5)
    >>> testbed.finish().time_to_accuracy(0.5)
    3.5
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
        self.scenario = Scenario.of(scenario)
        with ShortTraceback():
            self._run = OutsideRun(self.scenario, out, data_dir, replace=replace, on_round=on_round)
        self._arrivals = Arrivals(self._run)
        self._ended: list[tuple[CohortRun, int, float]] = []
        self._last: RoundResult | None = None
        self._sent_in = self._version = 0

    def __enter__(self) -> Self:
        """Return the testbed, which is finished at the end of the context."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.finish()
        else:
            self._run.fail(error)

    def _first_sight(self) -> tuple[str, list[tuple[str, str]]]:
        """Return a title, and lines on where the clock stands; no time passes."""
        last = self.last
        lines = [("simulated time", f"{self.now_s:,.6g} s"), ("clients", f"{self.scenario.crowd.clients:,}")]
        if last is not None:
            arrived = f"{np.count_nonzero(last.outcome == 'delivered'):,} of {last.client.size:,} delivered"
            lines.append(("last round", f"{last.number}, {arrived}"))
        return f"Testbed of {self.scenario.name!r}", lines

    @property
    def now_s(self) -> float:
        """Present simulated time in seconds."""
        return self._run.stepping.now_s

    @property
    def over(self) -> bool:
        """Whether no further round can start; a round that was played cannot be reported on after this question."""
        if self._arrivals.waiting:
            return False
        return self._run.to_question(past_arrivals=False) is None and not self._arrivals.waiting

    @property
    def in_flight(self) -> int:
        """How many clients of an asynchronous server were sent and have not delivered, as far as it knows."""
        self._places("in_flight")
        return self._run.decisions.server.in_flight

    @property
    def vacant(self) -> int:
        """Places of an asynchronous server without a client; 0 while arrivals of this instant wait, and at the end."""
        self._places("vacant")
        return 0 if self._arrivals.waiting or self._run.stepping.over else self._run.vacant

    @property
    def waiting(self) -> bool:
        """Whether arrivals of this instant are left that `next_arrival` returns without a wait."""
        return self._arrivals.waiting

    @property
    def last(self) -> RoundResult | None:
        """The round that was over last; None before the first."""
        return self._last if self._run.concurrency is None else self._arrivals.last

    def view(self, *, within_s: float = math.inf) -> RoundView:
        """Return what a server knows of its candidates now, as columns; copies that stay as they are.

        The columns are those that selectors see (`fedsim.selectors.RoundView`); `features` are always there: expected
        seconds of downlink, work and uplink, and samples. If no client can be reached, time passes until one can, at a
        synchronous server for ``within_s`` at most.

        Raises
        ------
        StepError
            If the run is over, or ``within_s`` is not allowed: at an asynchronous server it is infinite.
        """
        limit_s = self.now_s + checked_wait("view", "within_s", within_s, 0.0)
        if limit_s < math.inf and self._run.concurrency is not None:
            raise StepError("view: within_s: an asynchronous server waits by next_arrival; allowed: inf")
        if limit_s < math.inf:
            self._run.wait_for_candidates("view", limit_s)
        else:
            self._run.question("view")
        return self._run.view()

    def select(self) -> Cohort:
        """Return the clients that the scenario's selector takes now, with what it prescribes for them.

        The selector's question to clients, if it has one, takes its time. Asked again before the round is played, the
        answer is the same. At an asynchronous server these are clients for the vacant places; none if there are no
        candidates, or the selector takes none. If the run ends during the question, there are none either.
        """
        return self._run.select(self._run.question("select"))

    def round(
        self,
        cohort: Cohort | ArrayLike,
        *,
        down_bits: ArrayLike | None = None,
        up_bits: ArrayLike | None = None,
        samples: ArrayLike | None = None,
        flops: ArrayLike | None = None,
        compute_s: ArrayLike | None = None,
        limit_s: float = math.inf,
    ) -> RoundResult:
        """Play one round with a cohort, and return when its updates have arrived and which of them are used.

        Sizes, samples, operations and seconds are one number for all clients, or one for each in the order of the
        cohort.

        Parameters
        ----------
        cohort : ids of candidates, or a `Cohort` with weights, shares of work and the like
        down_bits, up_bits : sizes of the model and of an update, >= 0; the scenario's by default. Numbers that the
            selector asks for, and masks, are added
        samples : samples that each client passes through its model, >= 0, by which ``rounds.weights = "samples"``
            weighs its update; the scenario's by default. Passes that the selector asks for are added to its work
        flops : operations of each client's work, >= 0, in the place of samples
        compute_s : seconds of each client's work, >= 0, in the place of the scenario's law
        limit_s : longest wait for the cohort in seconds, >= 0; a policy that ends the round earlier does so

        Raises
        ------
        StepError
            If the call is not allowed, before time passes.
        """
        run = self._run
        if run.concurrency is not None:
            raise StepError(
                "round: the scenario has an asynchronous policy, which sends clients one by one; allowed: send and "
                "next_arrival"
            )
        self._run.question("round")
        limit = checked_wait("round", "limit_s", limit_s, 0.0)
        statement = {"down_bits": down_bits, "up_bits": up_bits, "samples": samples, "flops": flops}
        sent = run.stated("round", "cohort", cohort, statement | {"compute_s": compute_s})
        before = run.decisions.closed
        run.decisions.limit_s = limit
        run.stepping.answer(sent)
        run.stepping.go_on()
        run.unstate()
        run.decisions.limit_s = math.inf
        closed = run.decisions.closed
        if closed is None or closed is before:
            raise run.over("round")
        self._ended += run.decisions.take_ended()
        self._last, self._version = round_of(closed, self._ended), closed.version
        run.remember([(one, i) for one, i, _ in self._ended])
        if closed.own is not None:
            run.remember([(closed.own, i) for i in closed.own.everyone.tolist()])
        self._ended = []
        return self._last

    def report(
        self,
        losses: Numbers | None = None,
        *,
        weights: Numbers | None = None,
        accuracy: float | None = None,
        loss: float | None = None,
        metrics: Mapping[str, float] | None = None,
        measured: Mapping[str, Numbers] | None = None,
    ) -> None:
        """Tell what your code knows of the round just played, before the next call.

        Parameters
        ----------
        losses : mean training loss of each client's update, in the order of the round's clients or by id. The selector
            is told of those that have arrived, once `select` has asked it. At an asynchronous server at any time, of
            updates that wait
        weights : with which your model has used each client's update, >= 0, as ``losses``; 0 for one that it has not
            used. By default those of the scenario's aggregation
        accuracy, loss, metrics : of the newest model, on test samples, for the table of evaluations. Before the first
            round, of the first model. A server that has gone on to its next round, after `view`, `select` or `send`,
            still takes one such report, with the present second; a target of the scenario does not end the run then
        measured : other measurements by name, as ``losses``; see `fedsim.measurements.MEASUREMENTS`

        Raises
        ------
        StepError
            If no round was just played, or a value is not allowed.
        """
        run, last = self._run, self.last
        begun, over = run.stepping.begun, run.stepping.asked is Asked.REPORT
        of_updates = {**({} if losses is None else {"loss": losses}), **({} if measured is None else measured)}
        late = (accuracy, loss, metrics) != (None, None, None) and not run.awaits_evaluation
        if weights is not None and not over:
            raise StepError("report: weights: no round was just played; allowed: after `round`, before any other call")
        if late or (of_updates and not over and (run.concurrency is None or not begun)):
            raise StepError("report: no round was just played; allowed: after each round, before any other call")
        client = np.zeros(0, dtype=np.int64) if last is None else last.client
        told: list[tuple[Key, str, NDArray[Any]]] = []
        for name, given in of_updates.items():
            for one, value in checked_report("report", name, given, client).items():
                if (key := run.participation(one)) is not None:
                    told.append((key, name, value))
        used = {} if weights is None else checked_weights("report", weights, client)
        evaluation = checked_evaluation("report", accuracy, loss, metrics)
        for key, name, value in told:
            run.learner.put(key, name, value)
        run.weigh(used)
        if evaluation is not None:
            run.evaluate(evaluation)

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
        places, run = self._places("send"), self._run
        self._run.question("send")
        statement = {"down_bits": down_bits, "up_bits": up_bits, "samples": samples, "flops": flops}
        sent = run.stated("send", "clients", clients, statement | {"compute_s": compute_s})
        if sent.client.size > run.vacant:
            run.unstate()
            raise StepError(
                f"send: clients: {sent.client.size} are not allowed, as {run.vacant} of {places} places are vacant; "
                "allowed: wait for an arrival, or a larger rounds.policy.concurrency"
            )
        if sent.client.size:
            run.decisions.server.send(sent)
            self._sent_in = run.decisions.number
        run.unstate()

    def next_arrival(self, within_s: float = math.inf, *, or_candidate: bool = False) -> Arrival | None:
        """Wait for the next update at an asynchronous server, or for a client that it gives up.

        Updates that arrive at one instant are returned one by one. With the last of them, `Arrival.closed` has the
        round that the server has closed then, if there are updates enough.

        Parameters
        ----------
        within_s : longest wait in simulated seconds
        or_candidate : whether the wait also ends when clients have become available while places are vacant

        Returns
        -------
        arrival : None if the wait has ended without one
        """
        self._places("next_arrival")
        limit_s = self.now_s + checked_wait("next_arrival", "within_s", within_s, 0.0)
        if not self._arrivals.waiting:
            self._arrivals.wait(limit_s, or_candidate=or_candidate)
        return self._arrivals.take() if self._arrivals.waiting else None

    def advance(self, until_s: float, *, to_arrival: bool = False) -> tuple[Arrival, ...]:
        """Let simulated time pass up to an instant, and return what arrives meanwhile.

        Parameters
        ----------
        until_s : instant, finite and not before now
        to_arrival : whether the wait also ends at the instant of the first arrival

        Raises
        ------
        StepError
            If the instant is not allowed, or the run is over.
        """
        end_s = checked_wait("advance", "until_s", until_s, self.now_s)
        if end_s == math.inf:
            raise StepError("advance: until_s: inf is not allowed; it must be a finite instant")
        run = self._run
        if run.concurrency is None:
            run.leave_report("advance")
            run.stepping.let_pass(end_s, to_arrival=to_arrival)
            new = run.decisions.take_ended()
            self._ended += new
            return tuple(arrival_of(one, i, time_s, self._version) for one, i, time_s in new)
        run.question("advance")
        found: list[Arrival] = []
        while self._arrivals.waiting or (self.now_s < end_s and not (to_arrival and found) and not self.over):
            if not self._arrivals.waiting and not self.in_flight:
                run.stepping.let_pass(end_s)
                if not self._arrivals.collect():
                    break
            arrival = self.next_arrival(max(0.0, end_s - self.now_s))
            if arrival is not None:
                found.append(arrival)
        return tuple(found)

    def finish(self, notes: Sequence[str] = ()) -> History:
        """End the run after the rounds that were played, write its folder and return its history.

        Clients in flight and updates that wait are lost. Called again, it returns the same history.

        Parameters
        ----------
        notes : of your code, for the notes of the history
        """
        return self._run.finish(self._sent_in, notes)

    def _places(self, call: str) -> int:
        if self._run.concurrency is None:
            raise StepError(f"{call}: the scenario has no asynchronous policy; allowed: round")
        return self._run.concurrency
