"""Transfers over a shared medium while they go on: a hazard or an empty battery ends one before it is carried."""

import math
from functools import partial
from typing import Final, Protocol

import numpy as np
from simpy import Environment, Event

from fedsim.clock import call_after
from fedsim.network.transfers import Transfer
from fedsim.rounds.clients.draining import Drain
from fedsim.rounds.clients.interruptions import Interruptions

_SLACK_ULPS: Final = 8


class Drop(Protocol):
    """Ends the participation of a client."""

    def __call__(self, i: int, *, empty: bool) -> None:
        """End the participation of client i, which has left, or whose battery is empty."""
        ...


class OnAir:
    """The transfers of the clients of one cohort, at most one each, and the energy of phases of unknown duration."""

    def __init__(self, env: Environment, interruptions: Interruptions | None, drain: Drain | None) -> None:
        self._env, self._interruptions, self._drain = env, interruptions, drain
        self.meters = drain is not None and interruptions is not None
        self._transfers: dict[int, Transfer] = {}
        self._hazards: dict[int, Event] = {}
        self._drained: dict[int, Event] = {}

    def __contains__(self, i: int) -> bool:
        return i in self._transfers

    def meter(self, i: int, phase: int, wait_s: float) -> None:
        """Find where the battery of client i runs empty in a phase that begins; of unknown duration, by its bits."""
        if self._drain is not None and self._interruptions is not None:
            self._interruptions.set_empty(i, self._drain.begins(i, phase, self._env.now, wait_s))

    def open(self, i: int, phase: int, transfer: Transfer, drop: Drop) -> None:
        """Watch a transfer that has just started."""
        if self._interruptions is not None and (lost_s := self._interruptions.lost_after_s(i, phase)) < math.inf:
            self._hazards[i] = call_after(self._env, lost_s, partial(self._vanish, i, drop))
        if self._drain is not None and (lasts_s := self._drain.lasts_s(i, phase)) < math.inf:
            self._look_after(lasts_s, i, drop, self._env.now, lasts_s)
        self._transfers[i] = transfer

    def close(self, i: int) -> Transfer:
        """Free the medium, however the wait for the transfer of client i has ended, and return the transfer."""
        transfer = self._transfers.pop(i)
        transfer.cancel()
        if self._hazards:
            self._hazards.pop(i, None)
        if self._drained:
            self._drained.pop(i, None)
        return transfer

    def _vanish(self, i: int, drop: Drop, event: Event) -> None:
        if self._hazards.get(i) is event:
            drop(i, empty=False)

    def _look_after(self, delay_s: float, i: int, drop: Drop, began_s: float, lasts_s: float) -> None:
        self._drained[i] = call_after(self._env, delay_s, partial(self._look, i, drop, began_s, lasts_s))

    def _look(self, i: int, drop: Drop, began_s: float, lasts_s: float, event: Event) -> None:
        """Drop client i if its battery has been empty since now; waits for a free medium have cost nothing."""
        if self._drained.get(i) is not event:
            return
        left_s = lasts_s - (self._env.now - began_s - self._transfers[i].queued_s())
        if left_s > _SLACK_ULPS * np.spacing(self._env.now):
            self._look_after(left_s, i, drop, began_s, lasts_s)
        else:
            drop(i, empty=True)
