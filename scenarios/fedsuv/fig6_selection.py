"""Which clients does FedSUV select, and which does it give up? Section 6.3 and Fig. 6 of its paper.

    python scenarios/fedsuv/fig6_selection.py [--layout grid|random] [--features mixed|means] [--seeds N]
        [--coverage-runs N] [--coverage-rounds N] [--rounds N] [--clients N] [--out FOLDER]

2,500 clients whose expected validity and utility are uniform on the unit square, 400 rounds of 20 clients, no training.
The paper does not say what the clients' features are in this study. By default they are six noisy attributes, as many
as its section 4.2 names; ``--features means`` gives the two expectations instead, so that both models hold exactly. Two
regrets are summed over the rounds: the area of section 5.3, and the objective (OPT).
A seed takes half a minute of a processor, and the coverage of Theorem 5.3 (100 runs for each of five deltas) 15 more.
"""

import tomllib
from pathlib import Path

import numpy as np
from fig6_crowd import make_crowd
from fig6_figures import heat_maps, regrets
from fig6_measures import coverage, measures, selector_of
from fig6_rounds import play
from paper_runs.command import in_words, options
from paper_runs.tables import markdown
from study_scripts import written

FILE = tomllib.loads(Path(__file__).with_name("fig6.toml").read_text(encoding="utf-8"))


def main() -> None:
    numbers = {"clients": 2500, "rounds": 400, "seeds": 10, "coverage_runs": 100, "coverage_rounds": 100}
    words = {"layout": ["grid", "random"], "features": ["mixed", "means"]}
    asked = options(__doc__, **numbers, **words, out=Path("runs/fedsuv_fig6")).parse_args()
    crowds = [make_crowd(asked.clients, asked.layout, asked.features, seed) for seed in range(asked.seeds)]
    found = {
        name: [play(selector_of(**of), crowd, asked.rounds, seed) for seed, crowd in enumerate(crowds)]
        for name, of in FILE["selectors"].items()
    }
    rows = []
    for name, runs in found.items():
        values = np.array([measures(run, crowd) for run, crowd in zip(runs, crowds, strict=True)])
        spread = zip(values.mean(0), values.std(0), strict=True)
        rows.append([name, *(f"{mean:.3g} +- {std:.2g}" for mean, std in spread)])
    print(markdown(FILE["heads"], rows))
    print(f"Theorem 5.3 over {asked.coverage_runs} runs: share in which every rectangle holds in every round\n")
    shares = {delta: coverage({**FILE["coverage"], "delta": delta}, asked) for delta in FILE["deltas"]}
    rows = [[f"{delta:g}", f"{1 - delta:.3f}", f"{share:.3f}"] for delta, share in shares.items()]
    print(markdown(("delta", "promised", "measured"), rows))
    maps = heat_maps({name: found[name][0] for name in ("FedSUV", "Oort", "uniform")}, crowds[0])
    written({"heatmaps.png": maps, "regret.png": regrets(found, crowds)}, asked.out)


if __name__ == "__main__":
    in_words(main)
