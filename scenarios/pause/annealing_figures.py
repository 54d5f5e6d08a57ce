"""The figures of annealing.py."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from array_rounds import FloatArray
from matplotlib.figure import Figure

from fedsim.history import save


@dataclass(frozen=True)
class Quality:
    """Gap and time of one way to search, at growing numbers of iterations; means over states and seeds."""

    gap: FloatArray
    lost: FloatArray
    hit: FloatArray
    took_ms: FloatArray


def best_set(
    marks: Sequence[int],
    curves: Mapping[tuple[int, float], tuple[Sequence[float], FloatArray, FloatArray]],
    walks: int,
    out: Path,
) -> None:
    """Draw the chance of the best set over iterations: a panel for each state, a colour for each kappa."""
    figure = Figure(figsize=(10.5, 4.4), dpi=150, layout="constrained")
    afters = list(dict.fromkeys(after for after, _ in curves))
    panels = figure.subplots(1, len(afters), sharey=True, squeeze=False)[0]
    for axes, after in zip(panels, afters, strict=True):
        own = {kappa: curve for (state, kappa), curve in curves.items() if state == after}
        for colour, (kappa, (exact, on, seen)) in enumerate(own.items()):
            axes.plot(marks, exact, color=f"C{colour}", label=f"kappa = {kappa:g}")
            axes.plot(marks, on, "o", color=f"C{colour}", markersize=3)
            axes.plot(marks, seen, ":", color=f"C{colour}")
        axes.plot([], [], "-", color="grey", label="stands on it, exact law")
        axes.plot([], [], "o", color="grey", markersize=3, label=f"stands on it, {walks} walks")
        axes.plot([], [], ":", color="grey", label=f"has seen it, {walks} walks")
        axes.set_xscale("log")
        axes.set_ylim(0, 1)
        axes.set_title(f"after {after} rounds of PAUSE", fontsize=10)
        axes.set_xlabel("iterations j")
        axes.grid(visible=True, alpha=0.3)
    panels[0].set_ylabel("probability of the best set")
    panels[0].legend(frameon=False, fontsize=8)
    save(figure, out)


def gap(curves: Mapping[tuple[int, str], Quality], exact_ms: Mapping[int, float], out: Path) -> None:
    """Draw the gap over the time of a selection: a panel for each crowd, with the exact method's time."""
    figure = Figure(figsize=(10.5, 4.4), dpi=150, layout="constrained")
    panels = figure.subplots(1, len(exact_ms), sharey=True, squeeze=False)[0]
    for axes, (clients, took_ms) in zip(panels, exact_ms.items(), strict=True):
        for (crowd, kind), found in curves.items():
            if crowd == clients:
                style = "s--" if "warm" in kind else "^-." if "vanilla" in kind else "o-"
                axes.plot(found.took_ms, 100 * found.gap, style, markersize=4, label=kind)
        axes.axvline(took_ms, color="black", linewidth=0.9, label="exact arg max: no gap")
        axes.set_xscale("log")
        axes.set_ylim(0, 100)
        axes.set_title(f"K = {clients}", fontsize=10)
        axes.set_xlabel("milliseconds per selection")
        axes.grid(visible=True, alpha=0.3)
    panels[0].set_ylabel("energy gap to the exact arg max\n(% of a random set's gap)")
    panels[0].legend(frameon=False, fontsize=8)
    save(figure, out)
