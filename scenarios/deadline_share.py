"""Which deadline does which network need? The share of updates delivered over deadlines, per preset.

    python scenarios/deadline_share.py [--rounds N] [--out FOLDER]

runs the study of `deadline_share.toml`. The lines come from the run of each preset whose deadline is long: the share of
participations that took at most so long. The markers are runs of their own with that deadline, with the same crowd and
cohorts and, as their rounds start earlier, other fading. A client whose link is too weak never delivers.
"""

from typing import Any

import numpy as np
from study_scripts import number, panels, run, sizes, study_of, table, told, written

from fedsim import History
from fedsim.simulation import Simulation

TARGETS = (0.5, 0.9, 0.99)  # shares delivered
MARKERS = {"o": 6, "s": 10, "^": 6, "D": 8, "v": 7}  # and their sizes, hollow: those that coincide stay apart
BITS = 1e6


def took_s(history: History) -> np.ndarray:
    """Return how long participations took, in ascending order; infinity for those that were not delivered."""
    spent_s = history.column("participations", "end_s") - history.column("participations", "start_s")
    spent_s[history.column("participations", "outcome") != "delivered"] = np.inf
    return np.asarray(np.sort(spent_s))


def main() -> None:
    given = sizes(__file__, __doc__, rounds=20)
    study = study_of(__file__, rounds__count=given.rounds)
    long_s, *deadlines_s = dict.fromkeys(one.values["rounds.policy.deadline_s"] for one in study.variants)
    runs, each = [one for (one,) in run(study, given.out).values()], 1 + len(deadlines_s)
    figure, (axes,) = panels(size=(7.0, 4.4), xscale="log", xlabel="deadline (s)", ylabel="updates of 1 Mbit delivered")
    rows = []
    for i, (marker, size) in zip(range(0, len(runs), each), MARKERS.items(), strict=True):
        preset = study.variants[i].values["network"]
        links = Simulation(study.points[i].scenario).context.clients.links
        without = float(np.isinf(links.expected_downlink_s(BITS) + links.expected_uplink_s(BITS)).mean())
        seconds = took_s(runs[i])
        reached_s = seconds[np.isfinite(seconds)]
        shares = [number("delivered_share", one) for one in runs[i + 1 : i + each]]
        needed_s = [float(np.quantile(seconds, share, method="inverted_cdf")) for share in TARGETS]
        needed = [told(at) if np.isfinite(at) else f"> {long_s:g}" for at in needed_s]
        rows.append([preset, *(f"{share:.1%}" for share in shares), *needed, f"{without:.1%}"])
        steps = np.append(np.arange(reached_s.size + 1), reached_s.size) / seconds.size
        (line,) = axes.step([deadlines_s[0] / 2, *reached_s, long_s], steps, where="post", linewidth=1.5)
        drawn: dict[str, Any] = {"color": line.get_color(), "markersize": size, "markerfacecolor": "none"}
        axes.plot(deadlines_s, shares, marker, **drawn)
        axes.plot([], [], f"{marker}-", label=preset + (f" ({without:.1%} have no link)" if without else ""), **drawn)
    by, to = [f"{one:g} s" for one in deadlines_s], [f"s to {share:.0%}" for share in TARGETS]
    table(["delivered by", *by, *to, "no link"], rows)
    axes.set(xlim=(deadlines_s[0] / 2, long_s), ylim=(-0.03, 1.03))
    figure.legend(loc="outside upper center", ncols=3, frameon=False, fontsize=8)
    written({"delivered.png": figure}, given.out)


if __name__ == "__main__":
    main()
