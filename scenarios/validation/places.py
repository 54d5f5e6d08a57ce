"""What the place of a client gives its radio link: path loss, a line of sight, and shadowing."""

import math
from collections.abc import Iterator

import numpy as np

from fedsim.network import PATH_LOSSES, Cell, CorrelatedShadowing
from fedsim.streams import Streams
from validation import PUBLISHED, Row, mean_of, share_of, spread_of


def by_hand(formula: str) -> float:
    """Return the value of a formula of `published.toml`."""
    return float(eval(formula, {"__builtins__": {}}, vars(math)))  # noqa: S307 - of this folder


def path_loss(_effort: float) -> Iterator[Row]:
    """Path loss in dB: each scenario of TR 38.901 at given distances."""
    for one in PUBLISHED["path_loss"]:
        law = PATH_LOSSES.make(one["law"])
        for state, loss_db in (("", law.los_loss_db), ("N", law.nlos_loss_db)):
            for distance_m, formula in one[f"{state}LOS"]:
                title = f"{one['name']} {state}LOS {distance_m:g} m"
                yield Row(title, float(loss_db(float(distance_m))), by_hand(formula))


def links(effort: float) -> Iterator[Row]:
    """Lines of sight, and shadowing in dB: shares, and deviations with and without one, of TR 38.901."""
    for number, one in enumerate(PUBLISHED["path_loss"]):
        law, distance_m = PATH_LOSSES.make(one["law"]), float(one["los"][0])
        drawn = law.draw(np.full(round(200_000 * effort), distance_m), 0, Streams(100 + number))
        yield share_of(f"{one['name']} LOS share at {distance_m:g} m", drawn.los, by_hand(one["los"][1]))
        place = np.tile([distance_m, 0.0], (round(100_000 * effort), 1))
        _, loss = Cell(path_loss=law).losses(place, np.zeros((1, 2)), Streams(200 + number))
        los = law.draw(place[:, 0], 0, Streams(200 + number)).los
        for state, there, sigma_db in zip(("LOS", "NLOS"), (los, ~los), one["sigma_db"], strict=True):
            yield spread_of(f"{one['name']} {state} sigma in dB", loss[there, 0], sigma_db)


def correlation(effort: float) -> Iterator[Row]:
    """Shadowing over distance and sites: products at two places or towards two sites, of variance 1, over seeds."""
    apart_m = np.array([0.0, 10.0, 50.0, 120.0])
    place = np.column_stack([1000.0 + 0.6 * apart_m, -300.0 + 0.8 * apart_m])
    for method in ("field", "exact"):
        law = CorrelatedShadowing.model_validate({"decorrelation_m": 50.0, "site_correlation": 0.5, "method": method})
        value = np.stack([law.standard(place, 2, Streams(seed)) for seed in range(round(10_000 * effort))])
        for i in (1, 2, 3):
            name = f"correlation over {apart_m[i]:g} m ({method})"
            yield mean_of(name, value[:, 0, 0] * value[:, i, 0], math.exp(-apart_m[i] / 50))
        yield mean_of(f"correlation between sites ({method})", value[:, 0, 0] * value[:, 0, 1], 0.5)
