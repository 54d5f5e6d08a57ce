"""The contract check of laws of availability."""

import math
from typing import Final, get_args

import numpy as np

from fedsim.arrays import BoolArray, IntArray
from fedsim.devices import Availability, AvailabilityModel
from fedsim.devices.contracts import Kind
from fedsim.run_setup import RunSetup
from fedsim.streams import Streams
from fedsim.testing.examination import Examination, at_least_two

_TIMES_S: Final = (0.0, 7.25, 400.0, 30_000.0, 7.25)
"""Instants that are asked about, in this order: forward, back, and once again."""


def check_availability(model: AvailabilityModel, *, clients: int = 40, seed: int = 0) -> None:
    """Check that a law of availability keeps the contract of `fedsim.devices.Availability`; return None if it does.

    The law is built for crowds of several sizes and asked about several instants and draws. Each crowd must

    * declare its ``kind`` and, if that is ``"per-draw"``, a finite ``retry_s`` above 0,
    * return boolean arrays from ``available``, the same again whatever was asked in between, for some clients as for
      all, and from a second build with the same seed,
    * return from ``next_s`` an instant that is not earlier, at which a client is available in the draw returned, and
      return both unchanged when asked again with them; a timed law and a question about some clients keep the draw,
    * agree with that in ``earliest_s`` and in ``next_s`` of a ``part``,
    * keep up with ``available`` in a ``tracker`` of some clients,
    * return times of at least 0 from ``leaves_after_s``, all of them `inf` unless ``may_leave`` is true.

    Parameters
    ----------
    model : settings with a method ``build``, as they stand in ``devices.availability``
    clients : number of clients of the usual crowd, at least 2
    seed : seed of the random streams, >= 0

    Raises
    ------
    ContractError
        Naming the law, the fault, and the instant, the draw and the number of clients at which it shows.
    ValueError
        If ``clients`` is below 2.

    Examples
    --------
    >>> from fedsim.devices import Bernoulli
    >>> check_availability(Bernoulli(probability=0.5), clients=8)
    """
    at_least_two(clients=clients)
    for size in (clients, 1, 2):
        _Crowd(model, size, seed).check()


class _Crowd(Examination):
    def __init__(self, model: AvailabilityModel, clients: int, seed: int) -> None:
        super().__init__(model, f"{clients} clients")
        self._model, self._clients, self._seed = model, clients, seed
        self._law = self._built()

    def check(self) -> None:
        """Ask about all instants, then about each of them again with other questions in between."""
        ids = np.arange(self._clients)
        asked = [(time_s, draw) for draw, time_s in enumerate(_TIMES_S, start=1)]
        first = [self._available(self._law, ids, *one) for one in asked]
        fresh, member = self._built(), ids[:: self._clients // 2 + 1]
        for (time_s, draw), available in zip(asked, first, strict=True):
            self._check_next(self._law, ids, time_s, draw)
            for law, what in ((self._law, "changed by other questions"), (fresh, "not the same in a second build")):
                self.same(self._available(law, ids, time_s, draw), available, f"available: the answer is {what}")
            some = self._available(self._law, ids[::-2], time_s, draw)
            self.same(some, available[::-2], "available: the answer for some clients is not that for all")
            self._check_leaving(ids[available], time_s, draw)
            self._check_earliest(ids, available, time_s, draw)
            self._check_next(self._law.part(member), member, time_s, draw)
        self._check_tracker(ids[::2], asked)

    def _built(self) -> Availability:
        law = self._model.build(RunSetup(self._clients, Streams(self._seed)))
        self.law(isinstance(law, Availability), f"build returned {law!r}; it must be a fedsim.devices.Availability")
        self.law(law.kind in get_args(Kind), f"kind = {law.kind!r} is not allowed; it must be one of {get_args(Kind)}")
        if law.kind == "per-draw":
            retries = 0 < law.retry_s < math.inf
            self.law(retries, f"retry_s = {law.retry_s!r} is not allowed; it must be finite and above 0")
        return law

    def _available(self, law: Availability, client: IntArray, time_s: float, draw: int) -> BoolArray:
        self.place = f"at {time_s} s, draw {draw}, {self._clients} clients"
        answer = self.ask("available", law.available, client, time_s, draw)
        return self.array("available", answer, client.shape, np.bool_).copy()

    def _check_next(self, law: Availability, ids: IntArray, time_s: float, draw: int) -> None:
        """Check the first instant from one on, for a whole crowd or part and for its first client alone."""
        for client in (None, ids[:1]):
            self.place = f"at {time_s} s, draw {draw}, {self._clients} clients"
            at_s, then = self.ask("next_s", law.next_s, time_s, draw, client)
            self.law(at_s >= time_s, f"next_s: {at_s!r} is earlier")
            kept = then == draw or (client is None and law.kind == "per-draw")
            self.law(kept, f"next_s: the draw has become {then}, though nothing is drawn anew")
            if at_s < math.inf:
                some = self._available(law, ids if client is None else client, at_s, then).any()
                self.law(some, f"next_s: no client is available at {at_s!r} s in draw {then}")
                again = self.ask("next_s", law.next_s, at_s, then, client)
                fault = f"next_s: asked again at {at_s!r} s, it returns another instant or draw"
                self.law(again == (at_s, then), fault)

    def _check_tracker(self, ids: IntArray, asked: list[tuple[float, int]]) -> None:
        tracker, before = self.ask("tracker", self._law.tracker, ids), np.zeros(ids.size, dtype=np.bool_)
        for time_s, draw in asked:
            available = self._available(self._law, ids, time_s, draw)
            changed = self.ask("tracker.update", tracker.update, time_s, draw)
            self.same(tracker.available, available, "tracker: its clients are not those of available")
            sound = np.array_equal(np.sort(changed), np.flatnonzero(available != before))
            self.law(sound, f"tracker.update: {changed!r} is not what has come or gone")
            self.law(tracker.count == np.count_nonzero(available), f"tracker.count: {tracker.count} is wrong")
            before = available

    def _check_leaving(self, client: IntArray, time_s: float, draw: int) -> None:
        task_s = np.full(client.size, 5.0)
        after_s = self.ask("leaves_after_s", self._law.leaves_after_s, client, time_s, draw, task_s)
        self.array("leaves_after_s", after_s, client.shape, infinite=True)
        leaves = np.isfinite(after_s).any()
        self.law(self._model.may_leave or not leaves, "leaves_after_s: a client leaves, though may_leave is False")

    def _check_earliest(self, ids: IntArray, available: BoolArray, time_s: float, draw: int) -> None:
        from_s = self.ask("earliest_s", self._law.earliest_s, ids, time_s, draw)
        self.array("earliest_s", from_s, ids.shape, infinite=True)
        sound = np.array_equal(from_s <= time_s, available)
        self.law(sound, "earliest_s: it must be the instant for available clients, and later for others")
