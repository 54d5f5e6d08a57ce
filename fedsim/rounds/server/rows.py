"""The one writer of what a server's rounds leave behind: tables, the selector's reports and past rounds."""

import math
from collections.abc import Callable
from operator import add
from typing import Any, Final

import numpy as np

from fedsim.arrays import IntArray
from fedsim.history.column import Piece
from fedsim.history.outcomes import Fate, Outcome, RoundEnd
from fedsim.history.recorder import Recorder
from fedsim.rounds.clients.cohort import CohortRun, Members
from fedsim.rounds.clients.records import ParticipationRecords
from fedsim.rounds.policies.round import PastRounds, Round
from fedsim.rounds.server.charges import Charges
from fedsim.rounds.server.context import ServerContext
from fedsim.rounds.server.view import feedback

_OUTCOMES: Final = Outcome.labels()
_DELIVERED: Final = int(Outcome.DELIVERED)
_STALE_USED: Final = int(Fate.STALE_USED)
Check = Callable[[int, ParticipationRecords], None]
"""Called with a round and what participations or messages have spent and sent, in the order of time."""


class Rows:
    """Records the rounds of one server: a participation as soon as its fate is decided, a round when it is over."""

    def __init__(
        self,
        recorder: Recorder,
        context: ServerContext,
        check: Check | None,
        edge: int = -1,
        above: "Rows | None" = None,
        member: IntArray | None = None,
    ) -> None:
        self.recorder, self.context, self.edge, self._check, self._above = recorder, context, edge, check, above
        self.charges = Charges(recorder, context, edge, member)
        self.past = PastRounds()
        self._remembered = context.rules.policy.traits.remembered_rounds
        # Participations of the round by outcome; one byte each, they are counted as bytes.
        self._counts = [0] * len(_OUTCOMES)
        self._selected = self._stale_used = 0
        self.sent = 0
        self._unchecked: list[tuple[int, int, ParticipationRecords]] = []

    def dispatched(self, run: CohortRun) -> None:
        self._selected += run.cohort.client.size
        self.sent = run.order + 1

    def add_message(
        self, add: Callable[..., None], number: int, sent: int, records: ParticipationRecords, **columns: Any
    ) -> None:
        """Add rows of messages beside participations, which were sent before the cohort of an order, to their table."""
        add(round=number, edge=self.edge, **columns, **_spent(records))
        if self._check is not None:
            # A late client may have been asked as soon as it was idle, and is recorded at the end of the round.
            self._unchecked.append((sent, number, records))

    def finalize(self, run: CohortRun) -> IntArray:
        """Record the members of a cohort whose fate is decided and who are not recorded; return their positions."""
        rows = run.take_decided()
        if rows.size:
            part = rows if rows.size < run.fate.size else None
            records = run.participations.records(part)
            self.recorder.add_participations(self._columns(run, part, records))
            if run.plan.releases:
                self.charges.add(run, rows)
            if self._check is not None:
                self.check_messages(before=run.order)
                self._check(run.number, records)
            fate = run.fate if part is None else run.fate[part]
            self._stale_used += fate.tobytes().count(_STALE_USED)
        return rows

    def count(self, counted: Members) -> None:
        for run, members in counted:
            if not run.any_late and run.participations.all_delivered:
                self._counts[_DELIVERED] += members.size
                continue
            ended = run.plan.outcome[run.places(members)].tobytes()
            self._counts = [count + ended.count(code) for code, count in enumerate(self._counts)]

    def close(
        self,
        number: int,
        start_s: float,
        end_s: float,
        candidates: int,
        version: int,
        ended_by: RoundEnd = RoundEnd.ENOUGH,
    ) -> None:
        self.check_messages()
        values = {
            "round": number,
            "start_s": start_s,
            "end_s": end_s,
            "duration_s": end_s - start_s,
            "candidates": candidates,
            "selected": self._selected,
            **dict(zip(_OUTCOMES, self._counts, strict=True)),
            "stale_used": self._stale_used,
            "model_version": version,
            "ended_by": ended_by,
            **self.charges.of_round(number),
        }
        if self._above is None:
            self.recorder.add_round(values)
        else:
            self.recorder.add_edge_round(edge=self.edge, **values)
            self._above._selected += self._selected
            self._above._counts = list(map(add, self._above._counts, self._counts))
            self._above._stale_used += self._stale_used
            self._above.charges.add_energies(self.charges.energies)
        self.charges.begin()
        self._selected = self._stale_used = 0
        self._counts = [0] * len(_OUTCOMES)

    def report(self, round_: Round, end_s: float, reported: Members, picked: IntArray) -> None:
        """Pass to the selector, and to the policy of later rounds, what a round has shown."""
        self.past.deadline_s, self.past.picked = round_.time_limit_s, picked
        selector = self.context.selector
        if self._remembered == 0 and selector.ignores_reports:
            return
        reports = feedback(round_.number, end_s, reported, selector.needs)
        selector.observe(reports)
        run = round_.cohort_run
        if run is not None and not run.cohort.client.size:
            return  # all were lost before they were sent the model: it tells nothing of how long a round takes
        self.past.rounds_s.append(end_s - (round_.start_s if run is None else run.participations.start_s))
        self.past.durations_s.append(np.where(reports.delivered, reports.duration_s, np.inf))
        slowest_s = float(np.max(reports.duration_s, initial=0.0, where=reports.delivered))
        self.past.slowest_s = max(self.past.slowest_s, slowest_s)
        self.past.keep(self._remembered)

    def check_messages(self, before: float = math.inf) -> None:
        """Check what messages have cost that were sent before the cohort of an order."""
        while self._check is not None and self._unchecked and self._unchecked[0][0] <= before:
            _, number, records = self._unchecked.pop(0)
            self._check(number, records)

    def _columns(self, run: CohortRun, part: IntArray | None, records: ParticipationRecords) -> dict[str, Piece]:
        draws = run.cohort.draws
        columns = run.used_weight, run.work, run.fate, run.served_round, run.staleness
        weight, work, fate, served_round, staleness = columns if part is None else [each[part] for each in columns]
        return {
            "round": run.number,
            "edge": self.edge,
            "draws": 1 if draws is None else np.asarray(draws) if part is None else np.asarray(draws)[part],
            "weight": weight,
            "work": work,
            **_spent(records),
            "fate": fate,
            "start_version": run.model.version,
            "served_round": served_round,
            "staleness": staleness,
            **self.charges.columns(run, part),
        }


def _spent(records: ParticipationRecords) -> dict[str, Piece]:
    """Return the columns of the clients' times, bits, energy and outcomes."""
    return {
        "client": records.client,
        "start_s": records.start_s,
        "downlink_s": records.spent_s[0],
        "compute_s": records.spent_s[1],
        "uplink_s": records.spent_s[2],
        "queue_s": records.queue_s,
        "end_s": records.ended_s,
        "downlink_bits": records.sent_bits[0],
        "uplink_bits": records.sent_bits[1],
        "outcome": records.outcome,
        "cut_in": records.cut_in,
        "energy_j": records.energy_j,
    }
