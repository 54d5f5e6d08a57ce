"""A small synthetic server with one selector: its views, its questions and its reports."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from fedsim.arrays import BoolArray, FloatArray, IntArray, Vector
from fedsim.errors import FedsimError, SelectorError
from fedsim.selectors import Answers, Cohort, OracleView, Probe, Reports, RoundView, Selector, SelectorPort
from fedsim.testing.examination import Examination

_DEADLINE_S: Final = 2.0
_ASKING_S: Final = 0.3
_REPORT_EVERY: Final = 6
_LABELS: Final = 5
_ORACLES_ONLY: Final = ("expected_duration_s", "coming_duration_s", "coming_uplink_s", "coming_energy_j", "stays")


@dataclass(frozen=True)
class Trial:
    name: str
    clients: int
    present: float = 1.0
    delivering: float = 0.8
    answering: float = 0.7
    silent: float = 0.0
    idle_every: int = 0
    silent_every: int = 4
    feedback: bool = True
    samples: bool = True
    learning: bool = True
    budget: float | None = 10.0
    features: int = 0
    radio: bool = True
    batteries: bool = True
    wanted: tuple[int | None, ...] = (None,)
    asynchronous: bool = False


@dataclass(frozen=True)
class Outcomes:
    """Outcome of each client in one round if it is selected; arrays have shape (K, ...)."""

    delivers: BoolArray
    duration_s: FloatArray
    loss: FloatArray
    update: Vector
    answers: BoolArray
    away_s: FloatArray
    gain: FloatArray

    def reversed(self) -> "Outcomes":
        """Return different outcomes, for false reports."""
        return replace(
            self,
            delivers=~self.delivers,
            duration_s=self.duration_s[::-1] + 1.0,
            loss=self.loss[::-1],
            update=self.update[::-1],
        )


@dataclass(frozen=True)
class Answered:
    probe: Probe | None
    cohort: Cohort


class Server(Examination):
    error = SelectorError
    read_only = "the arrays of a view are read-only, a selector must not change them"

    def __init__(self, trial: Trial, seed: int, selector: Selector) -> None:
        super().__init__(selector)
        self.trial, self.seed, self.selector = trial, seed, SelectorPort.of(selector)
        self.name = self.selector.name
        rng = np.random.default_rng([seed, trial.clients])
        self.mean_s = rng.uniform(0.05, 1.0, trial.clients)
        self.samples = rng.integers(1, 200, trial.clients) * int(trial.samples)
        self.features = rng.random((trial.clients, trial.features))
        self.snr_hz = 10.0 ** rng.uniform(4.0, 9.0, trial.clients)
        self.power_dbm = np.random.default_rng([seed, 2]).choice([14.0, 20.0, 23.0], trial.clients)
        self.silent = np.random.default_rng([seed, 1]).permutation(trial.clients) < round(trial.silent * trial.clients)
        self.capacity_j = rng.uniform(10.0, 100.0, trial.clients)
        self.labels = np.random.default_rng([seed, 3]).dirichlet(np.full(_LABELS, 0.3), trial.clients)
        self.participations = np.zeros(trial.clients, dtype=np.int64)
        self.last_duration_s = np.full(trial.clients, np.nan)
        self.last_loss = np.full(trial.clients, np.nan)
        self.time_s = 0.0
        self._busy = np.zeros(trial.clients, dtype=np.bool_)

    def run(self, rounds: int) -> list[Answered]:
        return [self.run_round(number) for number in range(1, rounds + 1)]

    def run_round(self, number: int, tampered: bool = False) -> Answered:
        """Return the answers of one round, after a report of its outcomes, or of false ones if ``tampered``."""
        trial = self.trial
        self.place = f"in the trial with {trial.name}, round {number}"
        rng = np.random.default_rng([self.seed, trial.clients, number])
        idle = trial.idle_every and number % trial.idle_every == 0
        present = (rng.random(trial.clients) < trial.present) & (not idle) & ~self._busy
        outcomes = self._outcomes(number, rng)
        view = self._view(number, np.flatnonzero(present), outcomes)
        ask = self.selector.probe
        # The keys separate these generators from that of the outcomes: a selector must not infer the future from them.
        probe = None if ask is None else self.ask("probe", ask, view, self._rng(number, 2))
        if probe is not None:
            # A question takes time, and some clients leave in it.
            self.time_s += _ASKING_S
            view = self._view(number, np.flatnonzero(present & (outcomes.away_s > _ASKING_S)), outcomes)
            view = replace(view, answers=self._answers(number, probe, outcomes, view))
        cohort = self.ask("select", self.selector.select, view, self._rng(number, 1))
        size = view.client.size
        self.law(
            not size or cohort.client.size > 0, f"select returned an empty cohort, though there are {size} candidates"
        )
        self._close(number, cohort, outcomes.reversed() if tampered else outcomes)
        return Answered(probe, cohort)

    def _rng(self, number: int, key: int) -> np.random.Generator:
        return np.random.default_rng([self.seed, self.trial.clients, number, key])

    def _outcomes(self, number: int, rng: np.random.Generator) -> Outcomes:
        trial, clients = self.trial, self.trial.clients
        silent = trial.silent_every and number % trial.silent_every == 0
        learned = 1.0 if trial.learning else np.nan
        return Outcomes(
            delivers=(rng.random(clients) < trial.delivering) & ~self.silent,
            duration_s=np.maximum(0.0, self.mean_s + 0.1 * rng.standard_normal(clients)),
            loss=(2.0 / number + rng.random(clients)) * learned,
            update=rng.normal(0.0, 0.1, (clients, 4 * int(trial.learning))).astype(np.float32),
            answers=(rng.random(clients) < trial.answering) & (not silent),
            away_s=rng.exponential(3.0, clients),
            gain=rng.exponential(1.0, clients),
        )

    def _view(self, number: int, client: IntArray, outcomes: Outcomes) -> RoundView:
        trial, budget, wanted = self.trial, self.trial.budget, self.trial.wanted
        spent = np.zeros(client.size) if budget is None else budget * -np.expm1(-0.04 * self.participations[client])
        view = RoundView(
            round=self._round(number),
            time_s=self.time_s,
            clients=self.trial.clients,
            wanted=wanted[(number - 1) % len(wanted)],
            client=client,
            samples=self.samples[client],
            total_samples=int(self.samples.sum()),
            participations=self.participations[client],
            last_duration_s=self.last_duration_s[client],
            last_loss=self.last_loss[client],
            privacy_spent=spent,
            privacy_budget=budget,
            features=self.features[client],
            up_bits=1e6 * trial.radio,
            allocates=trial.radio,
            snr_hz=self.snr_hz[client] if trial.radio else None,
            at_request=self._at_request(client, outcomes),
        )
        return self._oracle_view(view, outcomes) if self.selector.oracle else view

    def _at_request(self, client: IntArray, outcomes: Outcomes) -> dict[str, Callable[[], FloatArray]]:
        """Return the columns of a view that are made when they are read."""
        made: dict[str, Callable[[], FloatArray]] = {}
        if self.trial.radio:
            made |= {"fading_gain": lambda: outcomes.gain[client], "full_power_dbm": lambda: self.power_dbm[client]}
        if self.selector.uses_labels and self.trial.learning:
            made["label_histogram"] = lambda: self.labels[client]
        if not self.trial.batteries:
            return made
        left = np.exp(-0.1 * self.participations[client])
        return made | {
            "charge_j": lambda: self.capacity_j[client] * left,
            "capacity_j": lambda: self.capacity_j[client],
            "charging_w": lambda: self.mean_s[client] - 0.3,
            "participation_j": lambda: 5.0 * self.mean_s[client],
        }

    def _oracle_view(self, view: RoundView, outcomes: Outcomes) -> OracleView:
        client = view.client

        def stays(from_s: FloatArray, until_s: FloatArray) -> BoolArray:
            if np.shape(from_s) != (client.size,) or np.shape(until_s) != (client.size,):
                raise TypeError(f"stays takes two arrays with one element for each of {client.size} candidates")
            return np.asarray(outcomes.away_s[client] >= until_s)

        return OracleView(
            **vars(view),
            expected_duration_s=self.mean_s[client],
            coming_duration_s=lambda: outcomes.duration_s[client],
            coming_uplink_s=lambda: 0.4 * outcomes.duration_s[client],
            coming_energy_j=(lambda: 5.0 * outcomes.duration_s[client]) if self.trial.batteries else None,
            stays=stays,
        )

    def _answers(self, number: int, probe: Probe, outcomes: Outcomes, view: RoundView) -> Answers:
        """Return the answers to a probe of clients that answer and are still candidates."""
        client = probe.client[outcomes.answers[probe.client] & np.isin(probe.client, view.client)]
        missing = np.full(client.size, np.nan)
        asked = probe.asks == "resources"
        norms, sizes = probe.asks == "update_norm", None
        if probe.response is not None:
            drawn = np.random.default_rng([self.seed, self.trial.clients, number, 3]).random((2, self.trial.clients))
            sizes = probe.response.answers(self.samples[client], *drawn[:, client])
        return Answers(
            client=client,
            loss=outcomes.loss[client] + 0.1 / number if probe.asks == "loss" else missing,
            compute_s=0.6 * self.mean_s[client] if asked else missing,
            uplink_s=0.4 * self.mean_s[client] if asked else missing,
            update_norm=self._measured_norms(client, outcomes) if norms else None,
            samples=sizes,
        )

    def _measured_norms(self, client: IntArray, outcomes: Outcomes) -> FloatArray:
        """Return the norms of clients' updates; NaN without learning."""
        if not self.trial.learning:
            return np.full(client.size, np.nan)
        return np.asarray(np.linalg.norm(outcomes.update[client], axis=1), dtype=np.float64)

    def _round(self, number: int) -> int:
        return number

    def _close(self, number: int, cohort: Cohort, outcomes: Outcomes) -> None:
        """Wait for the cohort, and report its outcomes to the selector."""
        reports = self._report(number, cohort, outcomes)
        self.time_s += float(reports.duration_s.max(initial=0.0))
        self._tell(reports)

    def _report(self, number: int, cohort: Cohort, outcomes: Outcomes) -> Reports:
        client = cohort.client.copy()
        self.participations[client] += 1
        delivered = (outcomes.delivers & (outcomes.duration_s < _DEADLINE_S))[client]
        return Reports(
            round=self._round(number),
            time_s=self.time_s,
            client=client,
            delivered=delivered,
            duration_s=np.where(delivered, outcomes.duration_s[client], _DEADLINE_S),
            loss=np.where(delivered & ("loss" in self.selector.needs), outcomes.loss[client], np.nan),
            measured=self._measured(client, delivered, outcomes),
        )

    def _tell(self, reports: Reports) -> None:
        client, delivered = reports.client, reports.delivered
        self.last_duration_s[client[delivered]] = reports.duration_s[delivered]
        self.last_loss[client[delivered]] = reports.loss[delivered]
        if self.trial.feedback:
            self.ask("observe", self.selector.observe, replace(reports, time_s=self.time_s))

    def _measured(self, client: IntArray, delivered: BoolArray, outcomes: Outcomes) -> dict[str, NDArray[Any]]:
        """Return the measurements of the selector's needs, NaN for clients that did not deliver."""
        loss, update = outcomes.loss[client], outcomes.update[client].copy()
        norm = np.linalg.norm(update, axis=1) if self.trial.learning else np.full(client.size, np.nan)
        gain = update[:, 0] if self.trial.learning else norm
        columns: dict[str, NDArray[Any]] = {
            "loss": loss,
            "loss_rms": 1.1 * loss,
            "accuracy_gain": gain.astype(np.float64),
            "update_norm": norm.astype(np.float64),
            "noise_energy": 0.0 * norm.astype(np.float64),
            "update": update,
        }
        for column in columns.values():
            column[~delivered] = np.nan
        return {name: columns[name] for name in self.selector.needs}

    def failure(self, member: str, error: Exception) -> FedsimError:
        """Return the fault of a method that failed, with a hint at values that only oracles have."""
        if isinstance(error, AttributeError) and error.name in _ORACLES_ONLY:
            only = f"only a selector with oracle = True has {error.name} in its views"
            return self.fault(f"{member} failed with {type(error).__name__}: {error}; {only}")
        return super().failure(member, error)


class AsynchronousServer(Server):
    """A server that selects while other clients are in flight, and reports ended participations from time to time."""

    def __init__(self, trial: Trial, seed: int, selector: Selector) -> None:
        super().__init__(trial, seed, selector)
        self._in_flight: list[tuple[int, Reports]] = []
        self._done: list[Reports] = []

    def _round(self, number: int) -> int:
        return 1 + (number - 1) // _REPORT_EVERY

    def _close(self, number: int, cohort: Cohort, outcomes: Outcomes) -> None:
        """Dispatch the cohort, and store the participations that have ended."""
        self.time_s += _ASKING_S
        self._busy[cohort.client] = True
        self._in_flight.append((number + number % 4, self._report(number, cohort, outcomes)))
        done = [reports for due, reports in self._in_flight if due <= number]
        self._in_flight = [(due, reports) for due, reports in self._in_flight if due > number]
        for reports in done:
            self._busy[reports.client] = False
        self._done += done
        if number % _REPORT_EVERY == 0 and self._done:
            self._tell(_joined(self._done, self._round(number)))
            self._done = []


def _joined(parts: list[Reports], round_: int) -> Reports:
    columns = {
        name: np.concatenate([getattr(part, name) for part in parts])
        for name in ("client", "delivered", "duration_s", "loss")
    }
    measured = {name: np.concatenate([part.measured[name] for part in parts]) for name in parts[0].measured}
    return Reports(round=round_, time_s=parts[-1].time_s, measured=measured, **columns)
