"""The one writer of what a server's rounds leave behind: tables, audit, the selector's reports and past rounds."""

import math
from operator import add
from typing import Final

import numpy as np

from fedsim.arrays import FloatArray, IntArray
from fedsim.history.column import Piece
from fedsim.history.outcomes import NO_VALUE, Fate, Outcome, RoundEnd, SecureStep
from fedsim.history.recorder import Recorder
from fedsim.privacy.central import ServerNoise
from fedsim.rounds.audit.audit import Audit
from fedsim.rounds.clients.cohort import CohortRun, Members
from fedsim.rounds.clients.records import ParticipationRecords
from fedsim.rounds.effects.privacy_budget import charged
from fedsim.rounds.policies.round import PastRounds, Round
from fedsim.rounds.server.context import ServerContext
from fedsim.rounds.server.knowledge import feedback

_OUTCOMES: Final = Outcome.labels()
_STALE_USED: Final = int(Fate.STALE_USED)
Energies = tuple[float, float, float, int]
"""Of noise and of signal in updates, how many of these were clipped, and how many there are."""
_NOTHING: Final[Energies] = 0.0, 0.0, 0.0, 0


class RoundLog:
    """Records the rounds of one server: a participation as soon as its fate is decided, a round when it is over."""

    def __init__(
        self,
        recorder: Recorder,
        context: ServerContext,
        audit: Audit | None,
        edge: int = -1,
        above: "RoundLog | None" = None,
        member: IntArray | None = None,
    ) -> None:
        self.recorder, self.context, self.audit, self.edge, self._above = recorder, context, audit, edge, above
        self.past = PastRounds()
        self._remembered = context.policy.traits.remembered_rounds
        self._member = member
        # Participations of the round by outcome; one byte each, they are counted as bytes.
        self._counts = [0] * len(_OUTCOMES)
        self._selected = self._stale_used = 0
        self._energies = _NOTHING
        self.sent = 0
        self._unchecked: list[tuple[int, int, ParticipationRecords]] = []

    def dispatched(self, run: CohortRun) -> None:
        self._selected += run.cohort.client.size
        self.sent = run.order + 1

    def probed(self, number: int, sent: int, records: ParticipationRecords, epsilon: FloatArray) -> None:
        self.recorder.add_probes(round=number, edge=self.edge, epsilon=epsilon, **_spent(records))
        if self.audit is not None:
            # A late client may have been asked as soon as it was idle, and is recorded at the end of the round.
            self._unchecked.append((sent, number, records))

    def stepped(self, number: int, step: SecureStep, records: ParticipationRecords) -> None:
        self.recorder.add_secure_steps(round=number, edge=self.edge, step=int(step), **_spent(records))
        if self.audit is not None:
            self._unchecked.append((self.sent, number, records))

    def finalize(self, run: CohortRun) -> IntArray:
        """Record the members of a cohort whose fate is decided and who are not recorded; return their positions."""
        rows = run.take_decided()
        if rows.size:
            part = rows if rows.size < run.fate.size else None
            records = run.participations.records(part)
            self.recorder.add_participations(self._columns(run, part, records))
            if run.releases:
                self._add_releases(run, [i for i in rows.tolist() if i in run.releases])
            self.check_probes(before=run.order)
            if self.audit is not None:
                self.audit.check(run.number, records)
            self._stale_used += run.fate[run.places(rows)].tobytes().count(_STALE_USED)
        return rows

    def count(self, counted: Members) -> None:
        for run, members in counted:
            ended = run.participations.outcome[run.places(members)].tobytes()
            self._counts = [count + ended.count(code) for code, count in enumerate(self._counts)]

    def add_energies(self, energies: Energies) -> None:
        """Add the energies of the noise and of the signal in updates that the present round has used."""
        noise, signal, clipped, used = self._energies
        self._energies = noise + energies[0], signal + energies[1], clipped + energies[2], used + energies[3]

    def add_server_noise(self, number: int, noise: ServerNoise | None) -> None:
        """Record the noise that the server has added to the aggregate of a round; None for none."""
        if noise is not None:
            self.recorder.add_releases(
                round=number,
                edge=self.edge,
                client=np.array([NO_VALUE]),
                epsilon=noise.epsilon,
                clipping_norm=noise.clipping_norm,
                sensitivity=noise.sensitivity,
                noise_scale=noise.scale,
            )

    def close(
        self,
        number: int,
        start_s: float,
        end_s: float,
        candidates: int,
        version: int,
        ended_by: RoundEnd = RoundEnd.ENOUGH,
    ) -> None:
        self.check_probes()
        leakage, mean_leakage = 0.0, None
        accountant = self.context.accountant
        if accountant is not None:
            spent = accountant.spent if self._member is None else accountant.spent[self._member]
            leakage = accountant.largest if self._member is None else float(spent.max())
            mean_leakage = float(spent.mean())
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
            "largest_leakage": leakage,
            "mean_leakage": mean_leakage,
            "noise_to_signal": _ratio(*self._energies[:2]),
            "clipped_share": _ratio(*self._energies[2:]),
            "ended_by": ended_by,
        }
        if self._above is None:
            self.recorder.add_round(values)
        else:
            self.recorder.add_edge_round(edge=self.edge, **values)
            self._above._selected += self._selected
            self._above._counts = list(map(add, self._above._counts, self._counts))
            self._above._stale_used += self._stale_used
            self._above.add_energies(self._energies)
        self._selected = self._stale_used = 0
        self._energies = _NOTHING
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

    def check_probes(self, before: float = math.inf) -> None:
        """Let the audit check the costs of questions that were put before the cohort of an order was sent."""
        while self.audit is not None and self._unchecked and self._unchecked[0][0] <= before:
            _, number, records = self._unchecked.pop(0)
            self.audit.check(number, records)

    def _add_releases(self, run: CohortRun, places: list[int]) -> None:
        """Record the releases of members at positions of a cohort."""
        facts = self.context.releases
        if facts is None or not places:
            return
        releases = [run.releases[i] for i in places]
        epsilon = np.array([release.epsilon for release in releases])
        number = np.array([release.index for release in releases])
        self.recorder.add_releases(
            round=run.number,
            edge=self.edge,
            client=run.cohort.client[places],
            number=number,
            epsilon=epsilon,
            spent=np.array([run.spent[i] for i in places]),
            **facts.columns(epsilon, number),
        )

    def _columns(self, run: CohortRun, part: IntArray | None, records: ParticipationRecords) -> dict[str, Piece]:
        draws = run.cohort.draws
        columns = run.used_weight, run.work, run.fate, run.served_round, run.staleness
        weight, work, fate, served_round, staleness = columns if part is None else [each[part] for each in columns]
        epsilon = charged(run.plan, run.everyone if part is None else part) if run.releases else 0.0
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
            "epsilon": epsilon,
        }


def _ratio(noise: float, signal: float) -> float | None:
    """Return noise over signal; None where that is no finite number."""
    ratio = noise / signal if signal > 0 else math.nan
    return ratio if math.isfinite(ratio) else None


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
