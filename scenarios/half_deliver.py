"""Which selectors find the clients that deliver? A deadline that half of a crowd of FedScale-like phones meets.

    python scenarios/half_deliver.py [--clients N] [--cohort N] [--rounds N] [--seeds N] [--share S] [--selectors "A;B"]

runs the study of `half_deliver.toml`. The deadline is the median duration of a participation, measured in a first round
of all clients of each seed. A client's duration varies little from round to round: about half of the crowd never
delivers, which the server does not know beforehand.
"""

from dataclasses import replace

import numpy as np
from study_scripts import Runs, run, seconds_to, sizes, study_of, table, told

from fedsim import History, simulate
from fedsim.studies.study import Study, Variant

LAST = 3  # evaluations whose mean is the accuracy at the end


def under(study: Study, seed: int, share: float, names: list[str], cohort: int) -> Study:
    """Return the study of one seed, under the deadline that a share of its crowd meets."""
    all_ = {"seed": seed, "selector": {"kind": "all"}, "rounds.count": 1, "rounds.policy": "wait-for-all"}
    first = simulate(study.base.replace(all_))
    took_s = first.column("participations", "end_s") - first.column("participations", "start_s")
    policy = {"rounds.policy": {"kind": "deadline", "deadline_s": float(np.quantile(took_s, share))}}
    known = {one.name: one.values for one in study.variants}
    arms = [Variant(name, {**known[name], "selector.cohort": cohort, **policy}) for name in names or known]
    return replace(study, seeds=(seed,), variants=tuple(arms), baseline=arms[0].name)


def figures(history: History) -> list[float]:
    """Return empty rounds in all and in the last two thirds, delivered share, final accuracy, seconds to 80 %."""
    empty = history.column("rounds", "delivered") == 0
    arrived = history.column("participations", "outcome") == "delivered"
    final = history.column("evaluations", "accuracy")[-LAST:].mean()
    return [empty.sum(), empty[empty.size // 3 :].sum(), arrived.mean(), final, seconds_to(history, 0.8)]


def main() -> None:
    given = sizes(__file__, __doc__, clients=150, cohort=10, rounds=60, seeds=5, share=0.5, selectors="")
    study = study_of(__file__, given.seeds, crowd__clients=given.clients, rounds__count=given.rounds)
    names, runs = [one.strip() for one in given.selectors.split(";") if one], Runs()
    for seed in study.seeds:
        own = under(study, seed, given.share, names, given.cohort)
        for name, of in run(own, given.out / f"seed-{seed}").items():
            runs.setdefault(name, []).extend(of)
    rows = []
    for name, of in runs.items():
        found = np.array([figures(one) for one in of])
        reached_s = found[:, 4][np.isfinite(found[:, 4])]
        cells = [
            *(f"{cell:.3g}" for cell in found[:, :4].mean(axis=0)),
            told(reached_s.mean() if reached_s.size else None),
        ]
        rows.append([name, *cells, f"{reached_s.size} of {len(of)}"])
    table(["", "empty", "late empty", "delivered", "accuracy", "to 80 % (s)", "reached"], rows)


if __name__ == "__main__":
    main()
