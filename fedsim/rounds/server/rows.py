"""The one writer of what a server's rounds leave behind: tables, the selector's reports and past rounds."""

from operator import add
from typing import Any, Final

import numpy as np

from fedsim.arrays import IntArray
from fedsim.history.column import Piece
from fedsim.history.outcomes import COMPUTE, DOWNLINK, NOT_CUT, UPLINK, Fate, Outcome, RoundEnd
from fedsim.history.recorder import Recorder
from fedsim.per_client import at
from fedsim.rounds.clients.cohort import CohortRun, Members
from fedsim.rounds.clients.participations import Participations
from fedsim.rounds.plan import Plan
from fedsim.rounds.policies.round import PastRounds, Round
from fedsim.rounds.server.context import ServerContext
from fedsim.rounds.server.view import feedback

_OUTCOMES: Final = Outcome.labels()
_DELIVERED: Final = int(Outcome.DELIVERED)
_STALE_USED: Final = int(Fate.STALE_USED)


class Rows:
    """Records the rounds of one server: a participation as soon as its fate is decided, a round when it is over."""

    def __init__(
        self,
        recorder: Recorder,
        context: ServerContext,
        edge: int = -1,
        above: "Rows | None" = None,
    ) -> None:
        self.recorder, self.context, self.edge, self._above = recorder, context, edge, above
        self.past = PastRounds()
        self._effects = context.effects.having("columns")
        self._recorded, self._of_round = context.effects.having("recorded"), context.effects.having("of_round")
        self._remembered = context.rules.policy.traits.remembered_rounds
        # Participations of the round by outcome; one byte each, they are counted as bytes.
        self._counts = [0] * len(_OUTCOMES)
        self._selected = self._stale_used = 0

    def _of_effects(self, plan: Plan, members: IntArray) -> dict[str, Piece]:
        found: dict[str, Piece] = {}
        for effect in self._effects:
            found.update(effect.columns(plan, members))
        return found

    def dispatched(self, run: CohortRun) -> None:
        self._selected += run.cohort.client.size

    def add_message(self, table: str, number: int, asked: Participations, **columns: Any) -> None:
        own = self._of_effects(asked.plan, asked.plan.everyone)
        self.recorder.add_columns(
            table,
            round=number,
            edge=self.edge,
            **columns,
            **_spent(asked) | {name: of for name, of in own.items() if "." not in name},
        )

    def finalize(self, run: CohortRun) -> IntArray:
        """Record the members of a cohort whose fate is decided and who are not recorded; return their positions."""
        rows = run.take_decided()
        if rows.size:
            draws: Any = 1 if run.cohort.draws is None else np.asarray(run.cohort.draws)
            fate, weight, served_round, staleness = run.decided
            columns = {
                "round": run.number,
                "edge": self.edge,
                "start_version": run.model.version,
                "draws": draws,
                "weight": weight,
                "work": run.work,
                **_spent(run.participations),
                "fate": fate,
                "served_round": served_round,
                "staleness": staleness,
            }
            if run.all_in_time:
                columns |= {"outcome": _DELIVERED, "cut_in": NOT_CUT}
            if rows.size < run.everyone.size:
                columns = {name: at(column, rows) for name, column in columns.items()}
            if self._effects:
                columns |= self._of_effects(run.plan, rows)
            self.recorder.add_columns("participations", **columns)
            for effect in self._recorded:
                effect.recorded(self, run.plan, rows)
            stale = columns["fate"] == _STALE_USED
            self._stale_used += rows.size * stale if type(stale) is bool else stale.tobytes().count(1)
        return rows

    def count(self, counted: Members) -> None:
        for run, members in counted:
            if run.all_in_time:
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
        delivered, late, dropped = self._counts
        values: dict[str, Any] = {
            "round": number,
            "start_s": start_s,
            "end_s": end_s,
            "duration_s": end_s - start_s,
            "candidates": candidates,
            "selected": self._selected,
            "delivered": delivered,
            "late": late,
            "dropped": dropped,
            "stale_used": self._stale_used,
            "model_version": version,
            "ended_by": ended_by,
        }
        for effect in self._of_round:
            values |= effect.of_round(self, number)
        if self._above is None:
            self.recorder.add_row("rounds", **values)
        else:
            self.recorder.add_row("edge_rounds", edge=self.edge, **values)
            self._above._selected += self._selected
            self._above._counts = list(map(add, self._above._counts, self._counts))
            self._above._stale_used += self._stale_used
        self._selected = self._stale_used = 0
        self._counts = [0] * len(_OUTCOMES)

    def report(self, round_: Round, end_s: float, reported: Members, picked: IntArray) -> None:
        """Pass to the selector, and to the policy of later rounds, what a round has shown."""
        run = round_.cohort_run
        nobody = run is not None and not run.cohort.client.size
        self.past.deadline_s, self.past.picked = self.past.deadline_s if nobody else round_.time_limit_s, picked
        selector = self.context.selector
        if self._remembered == 0 and selector.ignores_reports:
            return
        reports = feedback(round_.number, end_s, reported, selector.needs)
        selector.observe(reports)
        if nobody:
            return  # all were lost before they were sent the model: it tells nothing of how long a round takes
        self.past.rounds_s.append(end_s - (round_.start_s if run is None else run.participations.start_s))
        self.past.durations_s.append(np.where(reports.delivered, reports.duration_s, np.inf))
        slowest_s = float(np.max(reports.duration_s, initial=0.0, where=reports.delivered))
        self.past.slowest_s = max(self.past.slowest_s, slowest_s)
        self.past.keep(self._remembered)


def _spent(members: Participations) -> dict[str, Piece]:
    members.count_bits()
    plan, spent_s, sent_bits = members.plan, members.plan.spent_s, members.plan.sent_bits
    return {
        "client": plan.client,
        "start_s": plan.start_s,
        "downlink_s": spent_s[DOWNLINK],
        "compute_s": spent_s[COMPUTE],
        "uplink_s": spent_s[UPLINK],
        "queue_s": members.queued_s,
        "end_s": members.ended_s,
        "downlink_bits": sent_bits[0],
        "uplink_bits": sent_bits[1],
        "outcome": plan.outcome,
        "cut_in": plan.cut_in,
    }
