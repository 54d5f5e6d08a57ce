"""The history of a run with its analyses, as a notebook uses it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from fedsim.errors import RunError
from fedsim.history import accounting, critical_path, exports, fairness, figures, what_if
from fedsim.history.analyses import energy, explaining, gaps, lost, targets
from fedsim.history.first_sight import FirstSight
from fedsim.history.notes import Rates, notes_of
from fedsim.history.tables import Tables, X, Y, has_values
from fedsim.learning.models.settings import ModelPart
from fedsim.learning.models.trained import TrainedModel
from fedsim.units import in_seconds

if TYPE_CHECKING:
    from fedsim.learning.models.trained import Module


class Described(Protocol):
    """A scenario: what a run was made of."""

    @property
    def name(self) -> str: ...
    @property
    def seed(self) -> int: ...
    def digest(self) -> str: ...
    def describe(self) -> dict[str, Any]: ...
    def replace(self, values: Mapping[str, Any]) -> "Described": ...
    def to_toml(self) -> str: ...


FindScenario = Callable[[], Described]
FindModel = Callable[[ModelPart | str | None, int | None], TrainedModel]
FindEvaluations = Callable[["History"], "History"]
"""Where the scenario and the model of a run are found, and its history with an evaluation after every round."""


@dataclass(frozen=True, repr=False)
class History(FirstSight, Tables):
    """The tables of one run, and the analyses of this room as methods.

    Times are simulated seconds. No value depends on the machine or on when the run was made.

    Attributes
    ----------
    find_model : where `model` finds it; None for a history without one
    find_evaluations : how `evaluate_missing` has the evaluations that were not made; None for a history without
    find_scenario : where `scenario` finds it; None for a history without one
    digest : of the scenario; None for a history without one
    seed : of the scenario
    unfinished : what the run of a folder lacks to be whole, in words; None for a whole one
    remarks : sentences on what the scenario leaves without privacy, and why the run ended before its last round
    budget : greatest epsilon that a client may leak; None without privacy
    until_s : the budget of time, `rounds.until_s`: what is final is the model at this second; None without one
    said : the notes of a run folder; None for a history that was not read from one

    Examples
    --------
    >>> from fedsim import Scenario, simulate
    >>> scenario = Scenario.load("scenarios/pause/fig2_cifar_iid_small.toml")
    >>> scenario = scenario.replace({"rounds.count": 2, "learning": "none"})
    >>> history = simulate(scenario)
    >>> history.column("rounds", "round").tolist()
    [1, 2]
    >>> history.participations.num_rows
    10
    >>> history.digest == scenario.digest(), history.scenario == scenario, history.seed
    (True, True, 1)
    """

    find_model: FindModel | None = field(default=None, repr=False, compare=False, kw_only=True)
    find_evaluations: FindEvaluations | None = field(default=None, repr=False, compare=False, kw_only=True)
    find_scenario: FindScenario | None = field(default=None, repr=False, compare=False, kw_only=True)
    digest: str | None = field(default=None, compare=False, kw_only=True)
    seed: int | None = field(default=None, compare=False, kw_only=True)
    unfinished: str | None = field(default=None, compare=False, kw_only=True)
    remarks: tuple[str, ...] = field(default=(), compare=False, kw_only=True)
    budget: float | None = field(default=None, compare=False, kw_only=True)
    until_s: float | None = field(default=None, compare=False, kw_only=True)
    said: tuple[str, ...] | None = field(default=None, compare=False, kw_only=True)

    by_fate = accounting.by_fate
    cloud_path = critical_path.cloud_path
    critical_path = critical_path.critical_path
    deadline_whatif = what_if.deadline_whatif
    deadlines_that_keep = lost.deadlines_that_keep
    explain = explaining.explain
    fairness = fairness.fairness
    flat = exports.flat
    energy_to = energy.energy_to
    energy = energy.energy
    lost = lost.lost
    mean_over_time = gaps.mean_over_time
    mean_over_time_bounds = gaps.mean_over_time_bounds
    reached = targets.reached
    time_to = targets.time_to
    time_to_accuracy = targets.time_to_accuracy
    to_pandas = exports.to_pandas
    write_csv = exports.write_csv

    def _first_sight(self) -> tuple[str, list[tuple[str, str]]]:
        ends_s = self.column("rounds", "end_s")
        lost = [(int(self.column("rounds", name).sum()), name) for name in ("delivered", "late", "dropped")]
        lines = [
            ("rounds", f"{ends_s.size:,} in {ends_s[-1] if ends_s.size else 0.0:,.6g} s"),
            ("participations", ", ".join(f"{count:,} {name}" for count, name in lost)),
        ]
        if has_values(self, "accuracy"):
            last = gaps.value_at(self, "accuracy", gaps.final_s(self, self.until_s))
            first_s = self.time_to_accuracy(self.target_accuracy)
            when = "not reached" if first_s is None else f"first reached at {in_seconds(first_s, 4)} s"
            known = "not known" if last is None else f"{last:.2%}"
            lines.append(("accuracy", f"{known} at the end; {100 * self.target_accuracy:g} % {when}"))
        lines.append(("tables", ", ".join(f"{name} {table.num_rows:,}" for name, table in self.tables().items())))
        if self.unfinished is not None:
            lines.append(("not whole", self.unfinished))
        return f"History of {self.name!r}", lines

    @property
    def scenario(self) -> Described:
        """What was run.

        Raises
        ------
        RunError
            If the history has none.
        """
        if self.find_scenario is None:
            raise RunError(f"{self.name}: no scenario is known of this history")
        return self.find_scenario()

    @property
    def notes(self) -> list[str]:
        """Sentences that a user should know: remarks, and what went wrong without ending it."""
        rates = Rates()
        for batch in self.participations.to_batches():
            rates.see(batch)
        return told(self, rates, self.budget)

    def model(self, model: ModelPart | str | None = None, *, after_round: int | None = None) -> "Module":
        """Return the final model of the run as a ``torch.nn.Module`` in evaluation mode.

        Parameters
        ----------
        model : for the model of a folder whose kind is not fedsim's; see `fedsim.load_model`
        after_round : round whose model is wanted, for a folder that has it

        Raises
        ------
        RunError
            If the run has no such model.
        """
        if self.find_model is None:
            raise RunError(f"{self.name}: this history has no model: its run was about timing only, or had not ended")
        return self.find_model(model, after_round).module()

    def evaluate_missing(self) -> "History":
        """Return this history with an evaluation of every model, at time 0 and after each round.

        The run is repeated with the same draws. Its trainings are found in the store, so that it takes little more
        than the evaluations; without a store all are computed again.

        Raises
        ------
        RunError
            If the run cannot be repeated, or its repetition has other rounds.
        """
        if self.find_evaluations is None:
            raise RunError(f"{self.name}: this history has no models to evaluate: no scenario of it is known")
        again = self.find_evaluations(self)
        if not again.rounds.equals(self.rounds):
            raise RunError(f"{self.name}: a repetition of the run has other rounds, so that its models are others")
        return replace(self, evaluations=again.evaluations)

    def plot(
        self, x: X = "time", y: Y | str = "accuracy", *, smoothing: int | None = None, out: str | Path | None = None
    ) -> "figures.Figure":
        """Return a figure of one quantity against seconds or rounds; see `fedsim.history.figures.draw`.

        Parameters
        ----------
        x : ``"time"`` in simulated seconds, or ``"round"``
        y : ``"accuracy"``, ``"loss"``, ``"leakage"``, ``"mean_leakage"``, ``"duration"``,
            ``"energy"``, or a metric of the task by name
        smoothing : window of the causal mean, in points; that of the scenario by default. A leakage is never smoothed
        out : file to write, in the format of its ending; None for none
        """
        return figures.draw([self], x, y, smoothing=smoothing, out=out)


def told(history: History, rates: Rates, budget: float | None) -> list[str]:
    """Return the notes, with the rates of participations that were looked at, and the budget that a client has."""
    found = [*history.remarks, *notes_of(history, rates, budget)] if history.said is None else history.said
    return list(found)
