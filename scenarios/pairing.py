"""What do pairs save? The variance of paired differences over that of runs without pairs: a deadline, and a selector.

    python scenarios/pairing.py [--base FILE.toml] [--seeds N] [--out FOLDER]

runs the study of `pairing.toml`, on another base too, in a minute. 0.2 says that a pair is worth five runs of each
variant with seeds of their own. Values that a run does not reach count as far as it was watched. The last row has its
target on means of five evaluations, as in runs with noise on updates (``--base private.toml``).
"""

from dataclasses import replace
from pathlib import Path

import numpy as np
from study_scripts import command, table

from fedsim import History, Scenario, Study, sweep

COMPARED = {"deadline 0.8 s / 1 s": ("0.8 s", "1 s"), "selector uniform / PAUSE": ("uniform", "1 s")}
SMOOTHED = 5  # evaluations of a mean


def smoothed_s(history: History) -> float:
    """Return the second at which a mean of evaluations reaches 80 %, or the last one."""
    time_s, accuracy = history.curve("time", "accuracy", SMOOTHED)
    return float(time_s[np.argmax(accuracy >= 0.8)] if accuracy.max() >= 0.8 else time_s[-1])


def main(base: str = "quickstart.toml", seeds: int = 12, out: Path = Path("runs/pairing")) -> None:
    study = Study.load(Path(__file__).with_suffix(".toml"))
    study = replace(study, base=Scenario.load(Path(__file__).with_name(base)), seeds=study.seeds[:seeds])
    result = sweep(study, out=out / Path(base).stem, quiet=True)
    found = {name: {key: one.value for key, one in result.values(name).items()} for name in study.metrics}
    found[f"time_to_80%, means of {SMOOTHED}"] = {key: smoothed_s(result[key]) for key in result}
    rows = []
    for name, values in found.items():
        shares = []
        for arms in COMPARED.values():
            both = np.array([[values[arm, seed] for seed in study.seeds] for arm in arms])
            unpaired = both.var(axis=1, ddof=1).sum()
            shares.append(f"{np.var(both[0] - both[1], ddof=1) / unpaired:.2f}" if unpaired else "-")
        rows.append([name, *shares])
    table(["variance, paired over unpaired", *COMPARED], rows)


if __name__ == "__main__":
    command(main, __doc__)
