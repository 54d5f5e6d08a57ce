"""What does a cell's edge do to fairness? Clients' delivered shares against their distance, for two deadlines.

    python scenarios/cell_edge.py [--rounds N] [--out FOLDER]

runs the study of `cell_edge.toml`. Place and shadowing last, and fading averages out over an upload, so that most
clients deliver always or never. Jain's index (Jain, Chiu and Hawe, DEC-TR-301, 1984) is ``sum(x)**2 / (n sum(x**2))``:
1 if all deliver equally often, 1/n if one client delivers everything. That of the selections shows how much of the
inequality is the chance of being selected.
"""

import numpy as np
from study_scripts import panels, run, sizes, study_of, table, written

from fedsim.streams import Streams

RINGS = 8  # of equally many clients


def jain(of: np.ndarray) -> str:
    return f"{of.sum() ** 2 / (of.size * max(1, (of**2).sum())):.3f}"


def main() -> None:
    given = sizes(__file__, __doc__, rounds=1000)
    study = study_of(__file__, rounds__count=given.rounds)
    crowd, streams = study.base.crowd, Streams(study.base.seed)
    distance_m = np.hypot(*crowd.placement.positions(crowd.clients, streams).T)
    rings = np.array_split(np.argsort(distance_m), RINGS)
    groups = {f"{distance_m[ring[0]]:.0f} to {distance_m[ring[-1]]:.0f}": ring for ring in rings}
    groups["everybody"] = np.arange(crowd.clients)
    figure, (places, lorenz) = panels(2, (12.0, 4.5))
    shown = {}
    for name, (one,) in run(study, given.out).items():
        client, arrived = one.column("participations", "client"), one.column("participations", "outcome") == "delivered"
        selected, delivered = (np.bincount(of, minlength=crowd.clients) for of in (client, client[arrived]))
        never = np.count_nonzero((delivered == 0) & (selected > 0))
        rows = {at: f"{delivered[ring].sum() / selected[ring].sum():.1%}" for at, ring in groups.items()}
        rows |= {"never delivered": f"{never} of {np.count_nonzero(selected)}"}
        shown[name] = rows | {"Jain, deliveries": jain(delivered), "Jain, selections": jain(selected)}
        there = selected > 0
        places.plot(distance_m[there], (delivered[there] / selected[there]), "o", ms=3, alpha=0.5, label=name)
        for what, of in (("deliveries", delivered), ("selections", selected)):
            shares = np.append(0.0, np.cumsum(np.sort(of)) / max(1, of.sum()))
            lorenz.plot(np.linspace(0, 1, crowd.clients + 1), shares, label=f"{what}, {name}")
    table(["distance (m)", *shown], [[at, *(of[at] for of in shown.values())] for at in next(iter(shown.values()))])
    places.set(xlabel="distance to the site (m)", ylabel="delivered share")
    lorenz.set(xlabel="share of the crowd, those with the fewest first", ylabel="their share of all")
    for axes in (places, lorenz):
        axes.legend(frameon=False, fontsize=8)
    written({"cell_edge.png": figure}, given.out)


if __name__ == "__main__":
    main()
