"""`check_path_loss` refuses broken laws, each for its own fault, and passes fedsim's."""

import numpy as np

from fedsim import Component
from fedsim.network import PATH_LOSSES, LargeScale
from fedsim.testing import check_path_loss
from tests.golden import scenarios as golden
from tests.support.checks import passes, refuses


class TwoSlopes(Component):
    """Loss with a steeper slope beyond a breakpoint; the fault is an option."""

    fault: str = "none"
    breakpoint_m: float = 200.0

    def loss_db(self, distance_m):  # noqa: PLR0911
        near = np.maximum(np.asarray(distance_m, dtype=float), 1.0)
        loss = 40 + 20 * np.log10(near) + 20 * np.log10(np.maximum(near / self.breakpoint_m, 1.0))
        match self.fault:
            case "gain":
                return loss - 70
            case "nearer":
                return 200 - loss
            case "batch":
                return loss + 1e-9 * loss.size
            case "flat":
                return loss.ravel()
            case "not a number":
                return np.where(near > 1, loss, np.nan)
            case "draws":
                return loss + np.random.normal()  # noqa: NPY002
            case "writes":
                distance_m += 1.0
        return loss


class Drawn(TwoSlopes):
    """The same, with a line of sight or without."""

    def draw(self, distance_m, site, streams, client=None):
        rng = np.random.default_rng() if self.fault == "seedless" else streams.generator("line of sight", site)
        los = rng.random(distance_m.size) < np.exp(-distance_m / 100)
        sigma = -4.0 if self.fault == "sigma" else 4.0
        loss = TwoSlopes().loss_db(distance_m) + np.where(los, 0.0, 20.0)
        return LargeScale(loss[:1] if self.fault == "short" else loss, np.full(distance_m.shape, sigma), los)


test_sound_laws_pass = passes(
    check_path_loss, [*map(PATH_LOSSES.make, golden.PATH_LOSSES.values()), TwoSlopes(), Drawn()]
)
test_broken_laws_are_refused_for_their_fault = refuses(
    check_path_loss,
    [
        (TwoSlopes(fault="gain"), "TwoSlopes.loss_db returned .*; finite numbers of at least 0 are needed"),
        (TwoSlopes(fault="nearer"), "TwoSlopes.loss_db is .* dB at 20000 m .* at 20 m; it must be larger far away"),
        (TwoSlopes(fault="batch"), "TwoSlopes.loss_db: the answer for some distances is not that for all"),
        (TwoSlopes(fault="flat"), r"TwoSlopes.loss_db returned .* shape \(120,\)"),
        (TwoSlopes(fault="not a number"), "TwoSlopes.loss_db returned nan"),
        (TwoSlopes(fault="draws"), "TwoSlopes.loss_db drew from a global random generator"),
        (TwoSlopes(fault="writes"), "TwoSlopes.loss_db failed with ValueError.*must not be changed"),
        (Drawn(fault="seedless"), "Drawn.draw: .* differs when it is drawn again from the same seed"),
        (Drawn(fault="sigma"), r"Drawn.draw returned -4\.0"),
        (Drawn(fault="short"), r"Drawn.draw returned .* shape \(1,\)"),
        (Component(), "Component.loss_db: there is no such method"),
    ],
)
