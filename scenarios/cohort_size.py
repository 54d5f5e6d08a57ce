"""What does a larger cohort cost? Mean round time over cohort size, with dedicated and with shared uplinks.

    python scenarios/cohort_size.py [--rounds N] [--out FOLDER]

runs the study of `cohort_size.toml`. The dotted line is the mean time that a cohort's uploads take back to back, each
with the whole band. Equal shares end before it, since every phone puts all its power into its own share.
"""

from study_scripts import panels, run, sizes, study_of, table, written

from fedsim import History
from fedsim.simulation import Simulation

STYLES = ("o-", "s--", "^-.")
BITS = 1e6


def round_s(history: History) -> float:
    return float(history.column("rounds", "duration_s").mean())


def upload_s(history: History) -> float:
    """Return the mean time from the end of a client's work to the arrival of its update, waiting included."""
    return float((history.column("participations", "uplink_s") + history.column("participations", "queue_s")).mean())


def main() -> None:
    given = sizes(__file__, __doc__, rounds=200)
    study = study_of(__file__, rounds__count=given.rounds)
    rules, cohorts = (list(dict.fromkeys(one.values[path] for one in study.variants)) for path in study.paths)
    histories = [one for (one,) in run(study, given.out).values()]
    runs = dict(
        zip(rules, [histories[i : i + len(cohorts)] for i in range(0, len(histories), len(cohorts))], strict=True)
    )
    alone_s = Simulation(study.points[0].scenario).context.clients.links.expected_uplink_s(BITS)
    # Uniform selection draws the same cohorts under each rule.
    bound_s = [alone_s[one.column("participations", "client")].sum() / one.rounds.num_rows for one in runs["equal"]]
    values = {"mean round": round_s, "mean upload": upload_s}
    shown = {what: {rule: [of(one) for one in some] for rule, some in runs.items()} for what, of in values.items()}
    columns = [*shown["mean round"].values(), bound_s, *shown["mean upload"].values()]
    heads = [*(f"round, {rule}" for rule in rules), "back to back", *(f"upload, {rule}" for rule in rules)]
    table(["cohort", *heads], [[m, *(f"{s:.3f}" for s in of)] for m, *of in zip(cohorts, *columns, strict=True)])

    figures = {}
    for what, by_rule in shown.items():
        figure, (axes,) = panels(1, (6.4, 4.4), xlabel="cohort (clients per round)", xscale="log", yscale="log")
        for (rule, seconds), style in zip(by_rule.items(), STYLES, strict=True):
            axes.plot(cohorts, seconds, style, markersize=5, label=rule)
        axes.set_xticks(cohorts, list(map(str, cohorts)))
        axes.set_xticks([], minor=True)
        axes.set_ylabel(f"{what} time of a client, waiting included (s)" if "upload" in what else f"{what} time (s)")
        if "round" in what:
            axes.plot(cohorts, bound_s, ":", color="grey", label="uploads back to back", scaley=False)
        axes.legend(title="uplink", frameon=False)
        figures[f"{what.split()[1]}_time.png"] = figure
    written(figures, given.out)


if __name__ == "__main__":
    main()
