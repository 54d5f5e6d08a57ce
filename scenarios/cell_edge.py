"""What does a cell's edge do to fairness? Clients' delivered shares against their distance, for two deadlines.

    python scenarios/cell_edge.py [--rounds N] [--out FOLDER]

runs the study of `cell_edge.toml`. Place and shadowing last, and fading averages out over an upload, so that most
clients deliver always or never. Jain's index (Jain, Chiu and Hawe, DEC-TR-301, 1984) is ``sum(x)**2 / (n sum(x**2))``:
1 if all deliver equally often, 1/n if one client delivers everything. That of the selections shows how much of the
inequality is the chance of being selected.
"""

import numpy as np
from study_scripts import panels, run, sizes, study_of, table, written

from fedsim import History
from fedsim.streams import Streams

RINGS = 8  # of equally many clients


def counts(history: History, clients: int) -> tuple[np.ndarray, np.ndarray]:
    """Return how often each client was selected, and delivered."""
    client = history.column("participations", "client")
    arrived = history.column("participations", "outcome") == "delivered"
    return np.bincount(client, minlength=clients), np.bincount(client[arrived], minlength=clients)


def jain(of: np.ndarray) -> float:
    return float(of.sum()) ** 2 / (of.size * float((of.astype(float) ** 2).sum())) if of.any() else np.nan


def lorenz_curve(of: np.ndarray) -> list[float]:
    return [0.0, *np.cumsum(np.sort(of)) / max(1, of.sum())]


def main() -> None:
    given = sizes(__file__, __doc__, rounds=1000)
    study = study_of(__file__, rounds__count=given.rounds)
    crowd, streams = study.base.crowd, Streams(study.base.seed)
    distance_m = np.hypot(*crowd.placement.positions(crowd.clients, streams).T)
    runs = run(study, given.out).items()
    found = {name.replace("_s=", " ") + " s": counts(one, crowd.clients) for name, (one,) in runs}
    rings = np.array_split(np.argsort(distance_m), RINGS)
    groups = {f"{distance_m[ring[0]]:.0f} to {distance_m[ring[-1]]:.0f}": ring for ring in rings}
    groups["everybody"] = np.arange(crowd.clients)
    rows = [[at, *(f"{d[ring].sum() / s[ring].sum():.1%}" for s, d in found.values())] for at, ring in groups.items()]
    never = [f"{((d == 0) & (s > 0)).sum()} of {(s > 0).sum()}" for s, d in found.values()]
    indices = [[f"{jain(pair[which]):.3f}" for pair in found.values()] for which in (1, 0)]
    rows += [["never delivered", *never], ["Jain, deliveries", *indices[0]], ["Jain, selections", *indices[1]]]
    table(["distance (m)", *found], rows)

    places, (axes,) = panels(size=(6.8, 4.4), xlabel="distance to the site (m)", ylabel="delivered share")
    lorenz, (equal,) = panels(size=(5.2, 4.6), xlabel="share of the crowd, those with the fewest first", xlim=(0, 1))
    middles_m, ranks = [np.median(distance_m[ring]) for ring in rings], np.linspace(0, 1, crowd.clients + 1)
    for (name, (selected, delivered)), style in zip(found.items(), ("o-", "^--"), strict=True):
        shares = [delivered[ring].sum() / selected[ring].sum() for ring in rings]
        (line,) = axes.plot(middles_m, shares, style, label=f"{name}: Jain index {jain(delivered):.2f}")
        own = np.divide(delivered, selected, out=np.full(crowd.clients, np.nan), where=selected > 0)
        axes.plot(distance_m, own, style[0], ms=3, alpha=0.35, color=line.get_color())
        equal.plot(ranks, lorenz_curve(delivered), style[1:], label=f"deliveries, {name}")
    equal.plot(ranks, lorenz_curve(selected), ":", label="selections")
    equal.plot([0, 1], [0, 1], color="grey", linewidth=0.8, label="all equal")
    equal.set(ylim=(0, 1), ylabel="their share of all deliveries or selections")
    edge_m = study.base.describe()["network"]["sites"]["inter_site_distance_m"] / 2
    axes.axvline(edge_m, color="grey", ls=":", label="edge towards a neighbour")
    for one in (axes, equal):
        one.legend(frameon=False, fontsize=8)
    written({"delivered_by_distance.png": places, "deliveries.png": lorenz}, given.out)


if __name__ == "__main__":
    main()
