"""What is written down of rounds: participations as soon as it is known what came of them, and the rounds."""

import math

import numpy as np
from numpy.typing import NDArray

from fedsim.history.outcomes import UNDECIDED, Fate, Outcome, RoundEnd
from fedsim.history.recorder import Recorder
from fedsim.rounds.audit.audit import Audit
from fedsim.rounds.clients.cohort import CohortRun
from fedsim.rounds.clients.record import ParticipationRecords
from fedsim.rounds.server.context import ServerContext


class RoundLog:
    """Writes what happens to the coordinators of a run into its history.

    Parameters
    ----------
    recorder : Recorder
    context : ServerContext
    audit : checks what is taken down; None for no checks
    edge : index of the edge server; -1 for the only server, and for the cloud above edge servers
    above : records of the cloud, whose rounds count what happens at the edges
    member : ids of the clients whose leakage is looked at; None for all of the crowd
    """

    def __init__(
        self,
        recorder: Recorder,
        context: ServerContext,
        audit: Audit | None,
        edge: int = -1,
        above: "RoundLog | None" = None,
        member: NDArray[np.int64] | None = None,
    ) -> None:
        self.recorder, self.context, self.audit, self.edge, self._above = recorder, context, audit, edge, above
        self._member = member
        self._counts = np.zeros(len(Outcome), dtype=np.int64)
        self._selected = self._stale_used = 0
        self._unchecked: list[tuple[int, ParticipationRecords]] = []

    def sent(self, flight: CohortRun) -> None:
        """Count a cohort that was sent."""
        self._selected += flight.cohort.client.size

    def asked(self, number: int, said: ParticipationRecords) -> None:
        """Take down what a question to clients has cost."""
        size = said.client.size
        self.recorder.add_probes(round=np.full(size, number), edge=np.full(size, self.edge), **_spent(said))
        if self.audit is not None:
            # Who was late before may have been asked as it was done, and that is taken down when the round is over.
            self._unchecked.append((number, said))

    def count(self, outcome: NDArray[np.int8]) -> None:
        """Count how participations of the round ended."""
        self._counts += np.bincount(outcome, minlength=len(Outcome))

    def settle(self, flight: CohortRun) -> NDArray[np.int64]:
        """Take down the members of whom it is known by now what came of them; return their positions."""
        rows = np.flatnonzero((flight.fate != UNDECIDED) & ~flight.recorded)
        if rows.size:
            flight.recorded[rows] = True
            said = ParticipationRecords.of(flight.participations, flight.cohort.client, rows)
            self.recorder.add_participations(**self._columns(flight, rows, said))
            self.check_asked(before=flight.participations.start_s)
            if self.audit is not None:
                self.audit.check(flight.number, said)
            self._stale_used += int(np.count_nonzero(flight.fate[rows] == Fate.STALE_USED))
        return rows

    def close(
        self,
        number: int,
        start_s: float,
        end_s: float,
        candidates: int,
        version: int,
        ended_by: RoundEnd = RoundEnd.ENOUGH,
    ) -> None:
        """Take down a round that is over."""
        self.check_asked()
        leakage = 0.0
        if self.context.clients.accountant is not None:
            spent = self.context.clients.accountant.spent
            leakage = float((spent if self._member is None else spent[self._member]).max())
        values = {
            "round": number,
            "start_s": start_s,
            "end_s": end_s,
            "duration_s": end_s - start_s,
            "candidates": candidates,
            "selected": self._selected,
            **{outcome.label: int(self._counts[outcome]) for outcome in Outcome},
            "stale_used": self._stale_used,
            "model_version": version,
            "largest_leakage": leakage,
            "ended_by": ended_by,
        }
        if self._above is None:
            self.recorder.add_round(**values)
        else:
            self.recorder.add_edge_round(edge=self.edge, **values)
            self._above._selected += self._selected
            self._above._counts += self._counts
            self._above._stale_used += self._stale_used
        self._selected = self._stale_used = 0
        self._counts[:] = 0

    def check_asked(self, before: float = math.inf) -> None:
        """Let the audit check what questions have cost that were put before an instant, or at it."""
        while self.audit is not None and self._unchecked and self._unchecked[0][1].start_s <= before:
            self.audit.check(*self._unchecked.pop(0))

    def _columns(
        self, flight: CohortRun, rows: NDArray[np.int64], said: ParticipationRecords
    ) -> dict[str, NDArray[np.generic]]:
        cohort, size = flight.cohort, rows.size
        epsilon = np.zeros(size)
        if flight.releases:
            epsilon[:] = [flight.releases[i].epsilon if i in flight.releases else 0.0 for i in rows.tolist()]
        return {
            "round": np.full(size, flight.number),
            "edge": np.full(size, self.edge),
            "draws": np.ones(size, dtype=np.int64) if cohort.draws is None else np.asarray(cohort.draws)[rows],
            "weight": flight.used_weight[rows],
            "work": flight.work[rows],
            **_spent(said),
            "fate": flight.fate[rows],
            "start_version": np.full(size, flight.model.version),
            "served_round": flight.served_round[rows],
            "staleness": flight.staleness[rows],
            "epsilon": epsilon,
        }


def _spent(said: ParticipationRecords) -> dict[str, NDArray[np.generic]]:
    """Return the columns of who did what and for how long."""
    return {
        "client": said.client,
        "start_s": np.full(said.client.size, said.start_s),
        "downlink_s": said.spent_s[0],
        "compute_s": said.spent_s[1],
        "uplink_s": said.spent_s[2],
        "queue_s": said.queue_s,
        "end_s": said.ended_s,
        "downlink_bits": said.sent_bits[0],
        "uplink_bits": said.sent_bits[1],
        "outcome": said.outcome,
        "cut_in": said.cut_in,
        "energy_j": said.energy_j,
    }
