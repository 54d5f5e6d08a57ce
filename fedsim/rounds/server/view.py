"""What a server learns of its clients from what they have sent, and what its selector may see."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Final, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from fedsim.arrays import FloatArray, IntArray, filled
from fedsim.history.outcomes import Outcome
from fedsim.rounds.clients.cohort import CohortRun, Members
from fedsim.selectors import Answers, Reports, RoundView
from fedsim.selectors.candidates import Candidates, CandidateView

T = TypeVar("T", bound=np.generic)
_DELIVERED: Final = int(Outcome.DELIVERED)
_ONE: Final = np.array(1)


class Spent(Protocol):
    """The privacy of each client: what it has spent, and the total that it may."""

    spent: FloatArray
    total: float


class Knowledge:
    """The server's memory of its clients, as arrays over the crowd: NaN where a client has not shown a number."""

    def __init__(
        self,
        samples: IntArray,
        privacy: "Spent | None",
        features: FloatArray | None = None,
        up_bits: float = 0.0,
        channel: Callable[[IntArray, float], FloatArray | None] | None = None,
        allocates: bool = False,
        at_request: Mapping[str, Callable[[IntArray, float], FloatArray]] | None = None,
    ) -> None:
        clients, everyone = samples.size, np.arange(samples.size, dtype=np.int64)
        self.samples, self._client = samples, everyone
        self.participations = np.zeros(clients, dtype=np.int64)
        self.last_duration_s, self.last_loss = np.full((2, clients), np.nan)
        self._channel, self._at_request = channel, {} if at_request is None else at_request
        self._columns: dict[str, NDArray[Any]] = {
            "samples": samples,
            "participations": self.participations,
            "last_duration_s": self.last_duration_s,
            "last_loss": self.last_loss,
            "privacy_spent": np.zeros(clients) if privacy is None else privacy.spent,
            "features": np.zeros((clients, 0)) if features is None else features,
        }
        measured = None if channel is None else channel(everyone, 0.0)
        self.snr_hz = None if measured is None else np.array(measured)
        if self.snr_hz is not None:
            self._columns["snr_hz"] = self.snr_hz
        self._known: dict[str, Any] = {
            "clients": clients,
            "total_samples": int(samples.sum()),
            "privacy_budget": None if privacy is None else privacy.total,
            "up_bits": up_bits,
            "allocates": allocates,
        }
        self._whole: RoundView | None = None

    def view(
        self,
        number: int,
        time_s: float,
        candidates: IntArray | None = None,
        wanted: int | None = None,
        deadline_s: float | None = None,
    ) -> RoundView:
        now: dict[str, Any] = {"round": number, "time_s": time_s, "wanted": wanted, "deadline_s": deadline_s}
        if candidates is None and self._whole is not None:
            # In a third of the time of making it anew: most of it is the same in every round.
            whole = object.__new__(RoundView)
            vars(whole).update(vars(self._whole), **now)
            if self._at_request:
                vars(whole).update(at_request=self._requested(lambda: self._client, time_s))
            return whole
        shown: dict[str, Any] = {
            name: _read_only(column.view() if candidates is None else column[candidates])
            for name, column in {"client": self._client, **self._columns}.items()
        }
        at_request = self._requested(lambda: self._client if candidates is None else candidates, time_s)
        view = RoundView(**now, **shown, **self._known, at_request=at_request)
        if candidates is None:
            self._whole = replace(view)
        return view

    def view_of(
        self,
        number: int,
        time_s: float,
        candidates: Candidates,
        wanted: int | None = None,
        deadline_s: float | None = None,
    ) -> CandidateView:
        """Return what a selector may see at a selection among some clients; it takes columns when they are read."""
        now: dict[str, Any] = {"round": number, "time_s": time_s, "wanted": wanted, "deadline_s": deadline_s}
        at_request = self._requested(candidates.everyone, time_s)
        return CandidateView.of(candidates, self._columns, **now, **self._known, at_request=at_request)

    def sent(self, client: IntArray) -> None:
        self.participations[client] = self.participations[client] + _ONE

    def update(self, arrived: Members, now_s: float) -> None:
        """Remember what updates that have arrived, in time or late, show of their clients."""
        # Of a client that occurs more than once the last element counts.
        clients = []
        for run, members in arrived:
            places = run.places(members)
            client = run.cohort.client[places]
            clients.append(client)
            self.last_duration_s[client] = run.duration_s(np.inf)[places]
            if "loss" in run.measured:
                loss = run.measured["loss"][places].astype(np.float64)
                known = ~np.isnan(loss)
                self.last_loss[client[known]] = loss[known]
        if self.snr_hz is not None and self._channel is not None and arrived:
            client = clients[0] if len(clients) == 1 else np.concatenate(clients)
            self.snr_hz[client] = self._channel(client, now_s)

    def _requested(self, client: Callable[[], IntArray], time_s: float) -> dict[str, Callable[[], FloatArray]]:
        """Return the columns that are made at request for some clients at an instant, by name."""

        def made(make: Callable[[IntArray, float], FloatArray]) -> FloatArray:
            return np.array(make(client(), time_s), dtype=np.float64)

        return {name: partial(made, make) for name, make in self._at_request.items()}


def with_answers(view: RoundView, answers: Answers) -> RoundView:
    here = np.isin(answers.client, view.client)
    columns = {name: column for name, column in vars(answers).items() if column is not None}
    return replace(view, answers=Answers(**{name: column[here] for name, column in columns.items()}))


def feedback(number: int, now_s: float, reported: Members, needs: tuple[str, ...]) -> Reports:
    measured: dict[str, NDArray[Any]] = {name: _column(name, reported) for name in needs}
    client = _joined([run.cohort.client[members] for run, members in reported], np.int64)
    delivered = [run.participations.outcome[members] == _DELIVERED for run, members in reported]
    return Reports(
        round=number,
        time_s=now_s,
        client=client,
        delivered=_joined(delivered, np.bool_),
        duration_s=_joined([run.duration_s(now_s)[members] for run, members in reported], np.float64),
        loss=measured.get("loss", filled(client.size, np.nan)),
        measured=measured,
    )


def _column(name: str, reported: Members) -> NDArray[np.floating[Any]]:
    """Return one measurement of the reported members' updates, shape (n, ...); NaN where there is none."""
    known = next((run.measured[name] for run, _ in reported if name in run.measured), np.zeros(0))
    shape, dtype = known.shape[1:], known.dtype
    return _joined(
        [
            run.measured[name][members] if name in run.measured else np.full((members.size, *shape), np.nan)
            for run, members in reported
        ],
        dtype,
    )


def _joined(columns: list[NDArray[Any]], dtype: Any) -> NDArray[Any]:
    if len(columns) == 1:
        return columns[0].astype(dtype, copy=False)
    return np.concatenate(columns).astype(dtype, copy=False) if columns else np.zeros(0, dtype=dtype)


def _read_only(array: NDArray[T]) -> NDArray[T]:
    array.flags.writeable = False
    return array


def all_members(run: CohortRun) -> tuple[CohortRun, IntArray]:
    return run, run.everyone
