"""A run that is stepped: its server goes on until it asks for a decision, and its clock stands meanwhile."""

import math
from collections.abc import Callable
from dataclasses import replace

from simpy import Process

from fedsim.answers import ShortTraceback
from fedsim.clock import TIE_ULPS, delay_until
from fedsim.errors import StepError
from fedsim.rounds import Server
from fedsim.rounds.server.outside import Answer, Asked, Decisions
from fedsim.rounds.server.server import FINISHED


class Stepping:
    def __init__(self, server: Server, decisions: Decisions) -> None:
        self._server, self._decisions = server, decisions
        self._process: Process | None = None
        self._ended = self._failed = False

    @property
    def now_s(self) -> float:
        return float(self._server.env.now)

    @property
    def asked(self) -> Asked | None:
        return self._decisions.asked

    @property
    def begun(self) -> bool:
        return self._process is not None

    @property
    def over(self) -> bool:
        return self._ended

    def go_on(self, until_s: float = math.inf) -> Asked | None:
        """Go on until the server asks for something, the run is over, or a time has come; return what it asks for."""
        decisions, env = self._decisions, self._server.env
        if until_s == math.inf:
            self._step(lambda: decisions.asked is not None)
        else:
            latest_s = until_s + TIE_ULPS * math.ulp(until_s)
            self._step(lambda: decisions.asked is not None or env.peek() > latest_s)
        return decisions.asked

    def answer(self, answer: Answer) -> None:
        if self._process is not None:
            self._decisions.answer(answer)

    def let_pass(self, until_s: float, *, to_arrival: bool = False) -> None:
        """Let time pass while a server waits for candidates or a cohort, to an instant or that of the first arrival."""
        env, latest_s = self._server.env, until_s + TIE_ULPS * math.ulp(until_s)

        def arrived() -> bool:
            return to_arrival and bool(self._decisions.ended) and env.peek() > env.now + TIE_ULPS * math.ulp(env.now)

        self._step(lambda: self.asked is Asked.REPORT or env.peek() > latest_s or arrived())
        if self.asked is not Asked.REPORT and not arrived():
            self.move_to(until_s)
        if not self._ended and self.asked is not None:
            self._end_for_nobody()
            self.go_on()

    def _end_for_nobody(self) -> None:
        """Let a server that waits for clients go on if none can ever be sent again."""
        if self.asked in (Asked.COHORT, Asked.PLACES) and self._decisions.server.nobody_comes():
            if self.asked is Asked.COHORT:
                self._server.end_for_nobody(self._begun())
            else:
                self._decisions.server.look_around()
            self._decisions.asked = None

    def move_to(self, time_s: float) -> None:
        env = self._server.env
        if not self._ended and env.now < time_s:
            reached = env.timeout(delay_until(env, time_s))
            self._step(lambda: reached.processed)

    def stop(self, *, at_round: int | None) -> None:
        if self._ended:
            return
        if at_round is None:
            self._interrupt()
        else:
            self._server.stopping = replace(self._server.stopping, count=at_round)
            self._decisions.finished = True
            if self.asked is Asked.PLACES:
                self._decisions.server.look_around()
            self._decisions.answer(None)
        while not self._ended:
            asked = self.go_on()
            if asked is Asked.REPORT:
                self._decisions.answer(None)
            elif asked is not None:
                self._interrupt()

    def _interrupt(self) -> None:
        self._begun().interrupt(FINISHED)
        self._decisions.asked = None

    def _begun(self) -> Process:
        if self._process is None:
            self._process = self._server.begin()
        return self._process

    def _step(self, paused: Callable[[], bool]) -> None:
        if self._failed:
            raise StepError("the run has failed, and cannot go on; allowed: a new testbed")
        if self._ended:
            return
        process = self._begun()
        try:
            with ShortTraceback():
                self._server.go_on(process, paused)
                if process.processed:
                    self._ended = True
                    self._server.end(process)
        except BaseException:
            self._failed = True
            raise
