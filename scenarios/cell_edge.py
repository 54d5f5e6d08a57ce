"""What does a cell's edge do to fairness? Clients' delivered shares against their distance, for two deadlines.

    python scenarios/cell_edge.py [--rounds N] [--out FOLDER]

runs the study of `cell_edge.toml` in seconds. Place and shadowing last, and fading averages out over an upload: most
clients deliver always or never. Jain's index (Jain, Chiu and Hawe, DEC-TR-301, 1984) is ``sum(x)**2 / (n sum(x**2))``:
1 if all deliver equally often, 1/n if one client delivers everything. That of the selections shows how much of the
inequality is the chance of being selected.
"""

from pathlib import Path

import numpy as np
from study_scripts import command, run, study_of, table

from fedsim.history.fairness import Spread
from fedsim.streams import Streams

RINGS = 8  # of equally many clients


def main(rounds: int = 1000, out: Path = Path("runs/cell_edge")) -> None:
    study = study_of(__file__, rounds__count=rounds)
    crowd = study.base.crowd
    distance_m = np.hypot(*crowd.placement.positions(crowd.clients, Streams(study.base.seed)).T)
    rings = np.array_split(np.argsort(distance_m), RINGS)
    heads = [f"{distance_m[ring[0]]:.0f} to {distance_m[ring[-1]]:.0f}" for ring in rings]
    shown = {"distance (m)": [*heads, "Jain, deliveries", "Jain, selections"]}
    for name, (one,) in run(study, out).items():
        client, arrived = one.column("participations", "client"), one.column("participations", "outcome") == "delivered"
        selected, delivered = (np.bincount(of, minlength=crowd.clients) for of in (client, client[arrived]))
        shares = [f"{delivered[ring].sum() / selected[ring].sum():.1%}" for ring in rings]
        shown[name] = [*shares, *(f"{Spread.of(of.astype(float)).jain:.3f}" for of in (delivered, selected))]
    table(list(shown), zip(*shown.values(), strict=True))


if __name__ == "__main__":
    command(main, __doc__)
