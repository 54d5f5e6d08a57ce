"""The arrivals at an asynchronous server, handed over one by one."""

from collections import deque
from dataclasses import replace

from fedsim.bridges.testbed.columns import Arrival, RoundResult, arrival_of, round_of, without_client
from fedsim.bridges.testbed.outside_run import OutsideRun
from fedsim.errors import StepError
from fedsim.rounds.server.outside import Asked


class Arrivals:
    """Updates that have arrived at an asynchronous server, and rounds that it has closed."""

    def __init__(self, run: OutsideRun) -> None:
        self._run = run
        self._queue: deque[Arrival] = deque()
        self._version = 0
        self.last: RoundResult | None = None
        run.on_pause = self.collect

    @property
    def waiting(self) -> bool:
        return bool(self._queue)

    def take(self) -> Arrival:
        return self._queue.popleft()

    def collect(self) -> bool:
        """Take what has arrived, and the round that was closed with it; return whether there are arrivals now."""
        run = self._run
        if run.concurrency is None:
            return False
        new = run.decisions.take_ended()
        run.remember([(cohort, i) for cohort, i, _ in new])
        arrivals = [arrival_of(cohort, i, time_s, self._version) for cohort, i, time_s in new]
        closed = run.decisions.closed
        if closed is not None and (self.last is None or closed.number > self.last.number):
            self.last = round_of(closed, ())
            if not arrivals:
                arrivals.append(without_client(run.stepping.now_s))
            arrivals[-1] = replace(arrivals[-1], closed=self.last)
            self._version = closed.version
        self._queue.extend(arrivals)
        return self.waiting

    def wait(self, limit_s: float, *, or_candidate: bool) -> None:
        """Go on until there is an arrival, a time has come or, if wished, there may be a new candidate."""
        run, stepping, decisions = self._run, self._run.stepping, self._run.decisions
        if stepping.asked is not Asked.PLACES:
            stepping.answer(None)
            stepping.go_on()
            self.collect()
        while not self._queue:
            if stepping.over:
                raise run.over("next_arrival")
            decisions.server.leave_vacant(run.vacant)
            if not decisions.server.in_flight and not (or_candidate and decisions.server.look() is None):
                raise StepError(
                    "next_arrival: no client is in flight, so that nothing can arrive; allowed: send clients first, or "
                    "or_candidate = True while there is no candidate"
                )
            decisions.asked = None
            stepping.go_on(limit_s)
            self.collect()
            if self._queue or stepping.over:
                continue
            if stepping.asked is None:
                stepping.move_to(limit_s)
                decisions.asked = Asked.PLACES
                return
            if or_candidate:
                return
