"""What a server learns of its clients from what they have sent, and what its selector is told."""

from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from fedsim.history.outcomes import Outcome
from fedsim.privacy import PrivacyAccountant
from fedsim.rounds.clients.cohort import CohortRun, Members
from fedsim.selectors import OracleView, Reports, RoundView

T = TypeVar("T", bound=np.generic)


class Knowledge:
    """The server's memory of its clients, as arrays over the crowd.

    Parameters
    ----------
    samples : array of shape (K,)
        Training samples that each client declared.
    ledger : Ledger or None
        What each client states it has leaked when it checks in; None without privacy.
    expected_duration_s : array of shape (K,) or None
        Given to oracles only.
    features : array of shape (K, f) or None
        What clients declare about themselves; None for nothing.
    """

    def __init__(
        self,
        samples: NDArray[np.int64],
        ledger: PrivacyAccountant | None,
        expected_duration_s: NDArray[np.float64] | None,
        features: NDArray[np.float64] | None = None,
    ) -> None:
        self.samples, self.ledger, self.expected_duration_s = samples, ledger, expected_duration_s
        clients = samples.size
        self._total_samples = int(samples.sum())
        self._client = np.arange(clients, dtype=np.int64)
        self._nothing_spent = np.zeros(clients)
        self._features = np.zeros((clients, 0)) if features is None else features
        self.participations = np.zeros(clients, dtype=np.int64)
        self.last_duration_s = np.full(clients, np.nan)
        self.last_loss = np.full(clients, np.nan)

    def view(
        self,
        number: int,
        time_s: float,
        candidates: NDArray[np.int64] | None = None,
        wanted: int | None = None,
    ) -> RoundView:
        """Return what a selector may see at the start of a round.

        Parameters
        ----------
        number : round, from 1
        time_s : start of the round
        candidates : ids in ascending order; None for everybody
            Then the columns are read-only views of what is known, so that a round costs nothing per client.
        wanted : how many the server asks for; None for as many as the selector chooses
        """

        def shown(array: NDArray[T]) -> NDArray[T]:
            return _read_only(array.view() if candidates is None else array[candidates])

        view = RoundView(
            round=number,
            time_s=time_s,
            clients=self.samples.size,
            wanted=wanted,
            client=shown(self._client),
            samples=shown(self.samples),
            total_samples=self._total_samples,
            participations=shown(self.participations),
            last_duration_s=shown(self.last_duration_s),
            last_loss=shown(self.last_loss),
            privacy_spent=shown(self._nothing_spent if self.ledger is None else self.ledger.spent),
            privacy_budget=None if self.ledger is None else self.ledger.budget.total,
            features=shown(self._features),
        )
        if self.expected_duration_s is None:
            return view
        return OracleView(**vars(view), expected_duration_s=shown(self.expected_duration_s))

    def learn(
        self,
        client: NDArray[np.int64],
        duration_s: NDArray[np.float64],
        loss: NDArray[np.float64] | None,
    ) -> None:
        """Remember what delivered updates say of their clients, in time or late; a loss that is NaN is not known.

        Of a client that occurs more than once the last element counts.
        """
        self.last_duration_s[client] = duration_s
        if loss is not None:
            known = ~np.isnan(loss)
            self.last_loss[client[known]] = loss[known]


def _read_only(array: NDArray[T]) -> NDArray[T]:
    array.flags.writeable = False
    return array


def learn(knowledge: Knowledge, arrived: Members) -> None:
    """Remember what updates say of their clients, whether they came in time or not."""
    client = _joined([flight.cohort.client[members] for flight, members in arrived], np.int64)
    duration_s = _joined([flight.duration_s(np.inf)[members] for flight, members in arrived], np.float64)
    measured = any("loss" in flight.measured for flight, _ in arrived)
    knowledge.learn(client, duration_s, _column("loss", arrived).astype(np.float64) if measured else None)


def reports(number: int, now_s: float, reported: Members, needs: tuple[str, ...]) -> Reports:
    """Return what the selector is told of some members at the end of a round.

    Parameters
    ----------
    number : of the round
    now_s : when it ends
    reported : whom the server knows something of
    needs : what the selector wants to be measured of updates
    """
    measured = {name: _column(name, reported) for name in needs}
    client = _joined([flight.cohort.client[members] for flight, members in reported], np.int64)
    delivered = [flight.participations.outcome[members] == Outcome.DELIVERED for flight, members in reported]
    return Reports(
        round=number,
        time_s=now_s,
        client=client,
        delivered=_joined(delivered, np.bool_),
        duration_s=_joined([flight.duration_s(now_s)[members] for flight, members in reported], np.float64),
        loss=measured.get("loss", np.full(client.size, np.nan)),
        measured=measured,
    )


def _column(name: str, reported: Members) -> NDArray[np.floating[Any]]:
    """Return what was measured of the reported members' updates; NaN for those of which nothing was."""
    known = next((flight.measured[name] for flight, _ in reported if name in flight.measured), np.zeros(0))
    shape, dtype = known.shape[1:], known.dtype
    return _joined(
        [
            flight.measured[name][members] if name in flight.measured else np.full((members.size, *shape), np.nan)
            for flight, members in reported
        ],
        dtype,
    )


def _joined(columns: list[NDArray[Any]], dtype: Any) -> NDArray[Any]:
    return np.concatenate(columns).astype(dtype) if columns else np.zeros(0, dtype=dtype)


def everybody(flight: CohortRun) -> tuple[CohortRun, NDArray[np.int64]]:
    """Return all members of a cohort."""
    return flight, np.arange(flight.fate.size)
