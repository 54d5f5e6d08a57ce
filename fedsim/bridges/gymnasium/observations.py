"""The view of a round as arrays of fixed shape over all clients, with a mask of the candidates."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, get_args

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from fedsim.errors import ScenarioError
from fedsim.inputs.bounds import LATEST_S
from fedsim.selectors import RoundView

Observation = dict[str, Any]
"""Arrays by name."""
Column = Literal["samples", "participations", "last_duration_s", "last_loss", "privacy_spent", "features", "snr_db"]
COLUMNS: Final[tuple[Column, ...]] = get_args(Column)
FEATURES: Final = 3
"""Expected seconds of downlink, work and uplink."""
UNKNOWN: Final = -1.0
"""Stands for a duration and a loss before the first delivery."""
_MOST: Final = float(np.finfo(np.float32).max)
_LEAST_DB: Final = -200.0
_MOST_DB: Final = 200.0


@dataclass(frozen=True)
class Observations:
    """The observations of an environment: a dictionary of arrays.

    ``candidate`` (0 or 1, shape (K,)) says which clients can be selected; in all columns other clients have 0.
    ``round`` and ``time_s`` have shape (1,). Columns have shape (K,), ``features`` (K, 3). Raw, they hold:

    ===================  ======================================================================================
    ``samples``          training samples
    ``participations``   number of times that each client was selected
    ``last_duration_s``  seconds of its last delivered participation, -1 before the first
    ``last_loss``        mean training loss of its last delivered update, -1 before the first
    ``privacy_spent``    epsilon that it has leaked, 0 without privacy
    ``features``         expected seconds of downlink, work and uplink, as it has declared
    ``snr_db``           of its uplink at full power in the band of 1 Hz, 0 without radio
    ===================  ======================================================================================

    Normalised, all are in [-1, 1]: participations over the rounds before, samples, durations, losses and features over
    the largest known one among the candidates (-1 stays for what is not known), epsilon over the budget, dB over 200,
    the round over `count`, seconds over `until_s` (0 without).
    """

    clients: int
    columns: Sequence[Column]
    normalised: bool
    count: int
    until_s: float | None

    def __post_init__(self) -> None:
        wrong = [name for name in self.columns if name not in COLUMNS]
        if wrong or len(set(self.columns)) < len(self.columns):
            raise ScenarioError(
                f"columns: {tuple(self.columns)!r} is not allowed; it must name each at most once of "
                f"{', '.join(COLUMNS)}"
            )

    def space(self) -> spaces.Dict:
        most: dict[str, float] = {"round": self.count + 1.0, "time_s": LATEST_S}
        least: dict[str, float] = {"round": 0.0, "time_s": 0.0}
        for column in self.columns:
            most[column], least[column] = _MOST, UNKNOWN if column in ("last_duration_s", "last_loss") else 0.0
        if "snr_db" in self.columns:
            most["snr_db"], least["snr_db"] = _MOST_DB, _LEAST_DB
        found: dict[str, spaces.Space[Any]] = {"candidate": spaces.MultiBinary(self.clients)}
        for name, bound in most.items():
            low, high = (-1.0, 1.0) if self.normalised else (least[name], bound)
            found[name] = spaces.Box(low, high, self._shape(name), np.float32)
        return spaces.Dict(found)

    def of(self, view: RoundView | None, number: int, time_s: float) -> Observation:
        scalars = {"round": float(number), "time_s": time_s}
        if self.normalised:
            scalars["round"] /= self.count
            scalars["time_s"] = 0.0 if self.until_s is None else time_s / self.until_s
        found: Observation = {"candidate": np.zeros(self.clients, dtype=np.int8)}
        for name, value in scalars.items():
            found[name] = np.array([min(value, 1.0) if self.normalised else value], dtype=np.float32)
        for column in self.columns:
            found[column] = np.zeros(self._shape(column), dtype=np.float32)
        if view is not None:
            found["candidate"][view.client] = 1
            for column in self.columns:
                values = np.asarray(_READ[column](view), dtype=np.float64)
                shown = _normalised(column, values, view) if self.normalised else values
                found[column][view.client] = np.clip(shown, -_MOST, _MOST)
        return found

    def _shape(self, name: str) -> tuple[int, ...]:
        if name in ("round", "time_s"):
            return (1,)
        return (self.clients, FEATURES) if name == "features" else (self.clients,)


def _normalised(name: Column, values: NDArray[Any], view: RoundView) -> NDArray[Any]:
    if name == "participations":
        return values / max(1, view.round - 1)
    if name == "privacy_spent":
        return np.minimum(values / view.privacy_budget, 1.0) if view.privacy_budget else np.zeros_like(values)
    if name == "snr_db":
        return values / _MOST_DB
    largest = values.max(initial=0.0)
    return np.where(values >= 0, values / largest, UNKNOWN) if largest > 0 else np.minimum(values, 0.0)


def _snr_db(view: RoundView) -> NDArray[Any]:
    if view.snr_hz is None:
        return np.zeros(view.count)
    with np.errstate(divide="ignore"):
        return np.asarray(np.clip(10 * np.log10(view.snr_hz), _LEAST_DB, _MOST_DB))


_READ: Final[dict[str, Callable[[RoundView], NDArray[Any]]]] = {
    "samples": lambda view: view.samples,
    "participations": lambda view: view.participations,
    "last_duration_s": lambda view: np.nan_to_num(view.last_duration_s, nan=UNKNOWN),
    "last_loss": lambda view: np.nan_to_num(view.last_loss, nan=UNKNOWN),
    "privacy_spent": lambda view: view.privacy_spent,
    "features": lambda view: view.features[:, :FEATURES],
    "snr_db": _snr_db,
}
