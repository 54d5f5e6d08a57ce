"""Actions: which clients are selected, and which share of a band each of them has."""

from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from fedsim.arrays import IntArray
from fedsim.errors import ScenarioError
from fedsim.selectors import Allocation, Cohort, RoundView

Choice = Literal["scores", "members"]
CLIENTS: Final = "clients"
BANDWIDTH: Final = "bandwidth"
_CHOICES: Final[tuple[Choice, ...]] = ("scores", "members")


@dataclass(frozen=True)
class Actions:
    """The actions of an environment.

    With ``scores`` an action has a number in [-1, 1] for each client, and the candidates of the `cohort` largest are
    selected; of equal ones those with the lower ids. With ``members`` it has a 1 for each client to select, of which
    those that are candidates are sent, any number of them.

    With `bandwidth_hz` an action is a dictionary: ``clients`` as above, and ``bandwidth`` with a number a in [-1, 1]
    for each client. The selected ones divide the band in proportion to ``10 ** a``.
    """

    clients: int
    choice: Choice
    cohort: int
    bandwidth_hz: float | None = None

    def __post_init__(self) -> None:
        if self.choice not in _CHOICES:
            raise ScenarioError(f"action: {self.choice!r} is not allowed; it must be one of {', '.join(_CHOICES)}")
        if self.bandwidth_hz is not None and not 0 < self.bandwidth_hz < np.inf:
            raise ScenarioError(f"bandwidth_hz: {self.bandwidth_hz!r} is not allowed; it must be a number above 0")

    def space(self) -> "spaces.Space[Any]":
        numbers = spaces.Box(-1.0, 1.0, (self.clients,), np.float32)
        chosen: spaces.Space[Any] = spaces.MultiBinary(self.clients) if self.choice == "members" else numbers
        if self.bandwidth_hz is None:
            return chosen
        return spaces.Dict({CLIENTS: chosen, BANDWIDTH: spaces.Box(-1.0, 1.0, (self.clients,), np.float32)})

    def cohort_of(self, action: Any, view: RoundView) -> Cohort | None:
        """Return the cohort that an action selects; None if it selects no candidate."""
        if self.bandwidth_hz is None:
            client = self._chosen(self._numbers(action, "the action"), view)
            return Cohort(client) if client.size else None
        client = self._chosen(self._numbers(action[CLIENTS], CLIENTS), view)
        if not client.size:
            return None
        share = 10.0 ** np.clip(self._numbers(action[BANDWIDTH], BANDWIDTH)[client], -1.0, 1.0)
        return Cohort(client, allocation=Allocation(bandwidth_hz=self.bandwidth_hz * share / share.sum()))

    def _numbers(self, given: Any, name: str) -> NDArray[np.float64]:
        numbers = np.asarray(given, dtype=np.float64)
        if numbers.shape != (self.clients,) or not np.isfinite(numbers).all():
            raise ValueError(
                f"{name} has the shape {numbers.shape} or numbers that are not finite; allowed: a finite number for "
                f"each of the {self.clients} clients"
            )
        return numbers

    def _chosen(self, numbers: NDArray[np.float64], view: RoundView) -> IntArray:
        if self.choice == "members":
            return np.asarray(view.client[numbers[view.client] > 0])
        size = self.cohort if view.wanted is None else view.wanted
        best = np.argsort(-numbers[view.client], kind="stable")[:size]
        return np.asarray(np.sort(view.client[best]))
