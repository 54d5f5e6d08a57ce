"""The figure of PAUSE's regret in a setting."""

from typing import Final

import numpy as np
from genie_curves import MEASURE, POLICIES, REGRET, Runs, fit, mean_and_error
from genie_settings import SETTINGS
from matplotlib.figure import Figure
from study_scripts import panels

COLOURS: Final = dict(zip(POLICIES, ("C0", "C3", "C1", "C2"), strict=True))


def draw(name: str, runs: Runs, rounds: int) -> Figure:
    """Return the regret (15) over log n, and the regret by the Genie's measure on two log axes with what bends so.

    Bands are two standard errors. Where one set stays best the second panel has (15) again, beside its bound.
    """
    margin, n = name == "margin", np.arange(1.0, rounds + 1)
    figure, (left, right) = panels(2, (10.5, 4.4), xscale="log", xlabel="rounds n")
    left.set(title=f"{name}: {'dashed: a + b log n' if margin else 'a policy earns more than the Genie below 0'}")
    left.set(ylabel="regret (15), mean of the seeds")
    right.set(title="with the bound" if margin else "dashed: a + b sqrt n")
    right.set(ylabel="regret (15)" if margin else "regret by $C^G$", yscale="log")
    for axes, of in ((left, REGRET), (right, REGRET if margin else MEASURE)):
        left_out = () if axes is right else ("SA-PAUSE", "uniform") if margin else ("uniform",)
        for policy in (one for one in runs if one not in left_out):
            mean, error = mean_and_error(runs[policy], of)
            axes.plot(n, mean, color=COLOURS[policy], label=policy)
            axes.fill_between(n, mean - 2 * error, mean + 2 * error, color=COLOURS[policy], alpha=0.2, linewidth=0)
            if policy == "PAUSE" and margin == (axes is left):
                late, fitted = n >= n[-1] / 10, fit(n, mean, "log n" if margin else "sqrt n")[0]
                axes.plot(n[late], fitted[late], "--", color="black", linewidth=0.9)
    for style, (bound, values) in zip((":", "-."), SETTINGS[name].bounds(n).items() if margin else (), strict=False):
        right.plot(n[9:], values[9:], style, color="grey", label=bound)
    left.axhline(0.0, color="grey", linewidth=0.8)
    for axes in (left, right):
        axes.legend(frameon=False, fontsize=8)
    return figure
