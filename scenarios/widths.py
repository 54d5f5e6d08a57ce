"""What do narrower models buy under a deadline that half of the crowd meets? Plain training, HeteroFL and FedRolex.

    python scenarios/widths.py [--rounds N] [--seeds N] [--alpha A] [--out FOLDER]

The deadline is the median over the clients of the mean duration of a participation with the whole model. A slow client
is late in every round with plain training, and trains the largest width that fits with HeteroFL and FedRolex. A last
row gives plain training four times the deadline.
"""

from dataclasses import replace

import numpy as np
from study_scripts import Runs, panels, run, seconds_to, sizes, study_of, table, told, written

from fedsim import History
from fedsim.simulation import Simulation
from fedsim.studies.study import Study, Variant

TARGETS = (0.7, 0.8, 0.9)


def with_deadline(study: Study, seed: int) -> Study:
    """Return the study of one seed under the deadline of its crowd, with a row that has four times as much."""
    crowd = Simulation(study.base.replace({"seed": seed}), store=False).context.clients
    median_s = float(np.median(crowd.expected_s.sum(axis=0)))
    ways = [(one.name, one.values, 1.0) for one in study.variants]
    ways.append(("plain, four times the deadline", study.variants[0].values, 4.0))
    arms = [
        Variant(name, {**values, "rounds.policy": {"kind": "deadline", "deadline_s": times * median_s}})
        for name, values, times in ways
    ]
    return replace(study, seeds=(seed,), variants=tuple(arms))


def figures(history: History) -> list[float]:
    arrived = history.column("participations", "outcome") == "delivered"
    client, bits = (history.column("participations", name)[arrived] for name in ("client", "uplink_bits"))
    of_crowd = np.unique(client).size / history.scenario.crowd.clients
    final = history.column("evaluations", "accuracy")[-10:].mean()
    times_s = [seconds_to(history, target) for target in TARGETS]
    return [arrived.mean(), of_crowd, bits.mean() if bits.size else 0.0, final, *times_s]


def main() -> None:
    given = sizes(__file__, __doc__, rounds=200, seeds=3, alpha=0.1)
    study = study_of(__file__, given.seeds, rounds__count=given.rounds, learning__split__alpha=given.alpha)
    runs: Runs = {}
    for seed in study.seeds:
        for way, of in run(with_deadline(study, seed), given.out / f"seed-{seed}", executor="stacked").items():
            runs.setdefault(way, []).extend(of)
    forms = (".0%", ".0%", ",.0f", ".1%", *(".3g" for _ in TARGETS))
    middle = {way: np.median([figures(one) for one in of], axis=0) for way, of in runs.items()}
    heads = [
        "way",
        "delivered",
        "clients that did",
        "mean bits",
        "accuracy",
        *(f"s to {target:.0%}" for target in TARGETS),
    ]
    table(heads, [[way, *map(told, cells, forms)] for way, cells in middle.items()])
    figure, (axes,) = panels(1, (6.0, 3.8), xlabel="simulated time (s)", ylabel="test accuracy")
    for way, (one, *_) in runs.items():
        axes.plot(*one.curve(smoothing=1), label=way, linewidth=1.2)
    axes.legend(frameon=False, fontsize=8)
    written({"widths.png": figure}, given.out)


if __name__ == "__main__":
    main()
