"""What would another deadline have done? Time to accuracy over deadlines, on one crowd.

    python scenarios/deadline_whatif.py [--rounds N] [--out FOLDER]

runs the study of `deadline_whatif.toml`. All runs have one seed: the same places, fading and speeds. Differences
between rows come from the deadline alone.
"""

from study_scripts import panels, run, sizes, study_of, summary, times_to, written

from fedsim import draw

FORMS = {"mean_round_s": ".3f", "delivered_share": ".1%", "final_accuracy": ".1%"}


def main() -> None:
    given = sizes(__file__, __doc__, rounds=200)
    runs = run(study_of(__file__, rounds__count=given.rounds), given.out)
    times = times_to((0.8, 0.9, 0.95), ".1f")
    found = summary(runs, {**{name: (name, form) for name, form in FORMS.items()}, **times}, "deadline")
    bars, (axes,) = panels(1, (7.0, 4.0), xlabel="deadline", ylabel="simulated seconds to test accuracy, first reached")
    for i, name in enumerate(times):
        of = [numbers[len(FORMS) + i] for numbers in found.values()]
        reached = [at < float("inf") for at in of]
        shown = [at if there else 0.0 for at, there in zip(of, reached, strict=True)]
        drawn = axes.bar([place + 0.27 * i for place in range(len(of))], shown, 0.27, label=name.removeprefix("s to "))
        axes.bar_label(drawn, ["" if there else "never" for there in reached], rotation=90, fontsize=7)
    axes.set_xticks([place + 0.27 for place in range(len(runs))], list(runs))
    axes.legend(frameon=False)
    curves = draw([one for (one,) in runs.values()], smoothing=5, labels=list(runs))
    written({"accuracy.png": curves, "times.png": bars}, given.out)


if __name__ == "__main__":
    main()
