"""What do pairs save? The variance of paired differences over that of runs without pairs: a deadline, and a selector.

    python scenarios/pairing.py [--seeds N] [--out FOLDER]

runs the study of `pairing.toml`. 0.2 says that a pair is worth five runs of each variant with seeds of their own.
Values that a run does not reach count as far as it was watched.
"""

import numpy as np
from study_scripts import HERE, sizes, table

from fedsim import Study, sweep

COMPARED = {"deadline 0.8 s / 1 s": ("0.8 s", "1 s"), "selector uniform / PAUSE": ("uniform", "1 s")}


def main() -> None:
    given = sizes(__file__, __doc__, seeds=12)
    study = Study.load(HERE / "pairing.toml")
    study = study.with_seeds(study.seeds[: given.seeds])
    result, rows = sweep(study, out=given.out, quiet=True), []
    for name in study.metrics:
        values, shares = result.values(name), []
        for arms in COMPARED.values():
            both = np.array([[values[arm, seed].value for seed in study.seeds] for arm in arms])
            unpaired = both.var(axis=1, ddof=1).sum()
            shares.append(f"{np.var(both[0] - both[1], ddof=1) / unpaired:.2f}" if unpaired else "-")
        rows.append([name, *shares])
    table(["variance, paired over unpaired", *COMPARED], rows)


if __name__ == "__main__":
    main()
