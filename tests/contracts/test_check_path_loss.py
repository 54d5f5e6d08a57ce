"""`check_path_loss` refuses broken laws, each for its own fault, and passes fedsim's."""
# ruff: noqa: ARG005 (a law takes what the contract gives)

from dataclasses import replace

import numpy as np

from fedsim import Component
from fedsim.network import PATH_LOSSES, LargeScale
from fedsim.testing import check_path_loss
from tests.golden import scenarios as golden
from tests.support.checks import passes, refuses
from tests.support.lies import lying, spoilt


class TwoSlopes(Component):
    """Loss with a steeper slope beyond a breakpoint; the broken ones differ from it in one thing each."""

    def loss_db(self, distance_m):
        near = np.maximum(np.asarray(distance_m, dtype=float), 1.0)
        return 40 + 20 * np.log10(near) + 20 * np.log10(np.maximum(near / 200.0, 1.0))


class Drawn(TwoSlopes):
    """The same, with a line of sight or without."""

    def draw(self, distance_m, site, streams, client=None):
        los = streams.generator("line of sight", site).random(distance_m.size) < np.exp(-distance_m / 100)
        return LargeScale(self.loss_db(distance_m) + np.where(los, 0.0, 20.0), np.full(distance_m.shape, 4.0), los)


def losing(change):
    """Return a law with a change of its losses."""
    return spoilt(TwoSlopes, "loss_db", change)()


def drawing(change):
    return spoilt(Drawn, "draw", change)()


test_sound_laws_pass = passes(
    check_path_loss, [*map(PATH_LOSSES.make, golden.PATH_LOSSES.values()), TwoSlopes(), Drawn()]
)
test_broken_laws_are_refused_for_their_fault = refuses(
    check_path_loss,
    [
        (losing(lambda loss: loss - 70), "Lie.loss_db returned .*; finite numbers of at least 0 are needed"),
        (losing(lambda loss: 200 - loss), "Lie.loss_db is .* dB at 20000 m .* at 20 m; it must be larger far away"),
        (losing(lambda loss: loss + 1e-9 * loss.size), "loss_db: the answer for some distances is not that for all"),
        (losing(np.ravel), r"Lie.loss_db returned .* shape \(120,\)"),
        (losing(lambda loss: np.where(loss > 40, loss, np.nan)), "Lie.loss_db returned nan"),
        (losing(lambda loss: loss + np.random.normal()), "Lie.loss_db drew from a global random generator"),  # noqa: NPY002
        (
            lying(TwoSlopes, "loss_db", lambda self, far_m: far_m.sort())(),
            "failed with ValueError.*must not be changed",
        ),
        (
            drawing(lambda drawn: replace(drawn, loss_db=drawn.loss_db + np.random.default_rng().random())),
            "Lie.draw: .* differs when it is drawn again from the same seed",
        ),
        (drawing(lambda drawn: replace(drawn, sigma_db=-drawn.sigma_db)), r"Lie.draw returned -4\.0"),
        (drawing(lambda drawn: replace(drawn, loss_db=drawn.loss_db[:1])), r"Lie.draw returned .* shape \(1,\)"),
        (Component(), "Component.loss_db: there is no such method"),
    ],
)
