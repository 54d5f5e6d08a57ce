"""The command ``fedsim calibrate``: from measured participations to a scenario."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, cast

import typer

from fedsim.cli.options import one_path, path_option
from fedsim.cli.printing import print_notes, print_table
from fedsim.errors import FedsimError

if TYPE_CHECKING:
    from fedsim.calibration import Agreement, Calibration

_PER_CENT = 100


def calibrate(
    log: Annotated[
        Path,
        typer.Argument(metavar="LOG", callback=one_path, help="Participations as CSV or Parquet, or a run folder."),
    ],
    out: Annotated[Path, path_option("--out", "Scenario to write; an existing file stays as it is.")] = Path(
        "calibrated.toml"
    ),
    rounds_table: Annotated[
        Path | None, path_option("--rounds-table", "Table of rounds; its candidates tell who was there.")
    ] = None,
    by: Annotated[
        str, typer.Option("--by", help="crowd: clients are drawn around one law; class or client: each has a factor.")
    ] = "crowd",
    base: Annotated[
        Path | None, path_option("--base", "Scenario that gives policy and selector.", metavar="FILE")
    ] = None,
    clients: Annotated[
        int | None, typer.Option("--clients", min=1, max=1_000_000, help="Clients of the crowd (default: seen).")
    ] = None,
    samples: Annotated[int, typer.Option("--samples", min=1, help="Samples of a client, if the log has none.")] = 100,
    held_out: Annotated[float, typer.Option("--held-out", help="Share of the rounds kept for the comparison.")] = 0.2,
    rounds: Annotated[int, typer.Option("--simulate", min=1, max=10_000, help="Rounds of the comparison.")] = 500,
    force: Annotated[bool, typer.Option("--force", help="Write over an existing file.")] = False,
) -> None:
    """Fit laws of latency, compute and availability to measured participations, and write a scenario with them.

    The columns are those of the table participations of a run folder; most may be missing. Printed are the laws, and
    how well round times that are simulated with them agree with the measured ones.
    """
    from fedsim.calibration import calibrate as fit, read_log
    from fedsim.scenario import Scenario
    from fedsim.whole_files import replace_file

    if by not in ("crowd", "class", "client"):
        raise FedsimError(f"--by: {by!r} is not allowed; allowed: crowd, class, client")
    if not 0 <= held_out < 1:
        raise FedsimError(f"--held-out: {held_out!r} is not allowed; it must be at least 0 and below 1")
    if out.exists() and not force:
        raise FedsimError(f"{out}: exists; --force writes over it, --out names another file")
    found = fit(
        read_log(log, rounds_table),
        by=cast(Literal["crowd", "class", "client"], by),
        clients=clients,
        samples=samples,
        base=None if base is None else Scenario.load(base),
        held_out=held_out,
        rounds=rounds,
        name=out.stem,
    )
    text = found.scenario.to_toml()
    replace_file(out, lambda part: part.write_text(text, encoding="utf-8"))
    print_notes(*found.notes)
    _print_laws(found)
    for one in found.agreements:
        _print_agreement(one)
    typer.echo(str(out))


def _print_laws(found: "Calibration") -> None:
    from fedsim.history.outcomes import PHASES

    lines = []
    for one in found.phases:
        fit, split = one.fit, one.effects
        told = ", ".join(_told(name, value, fit.errors.get(name)) for name, value in fit.options.items())
        if split.spread_sigma:
            told += f"; clients spread by sigma {split.spread_sigma:.3g} +- {split.spread_error:.2g}"
        least = min(fit.aic.values(), default=0.0)
        others = ", ".join(
            f"{name} +{value - least:.0f}" for name, value in sorted(fit.aic.items(), key=lambda item: item[1])
        )
        size = f"{fit.size}, {fit.cut} cut" if fit.cut else str(fit.size)
        lines.append((PHASES[one.phase], fit.kind, told, size, f"{fit.distance:.3f}" if fit.aic else "", others))
    there = found.presence
    for title, table in (("availability", there.availability), ("dropout", there.dropout)):
        told = ", ".join(_told(name, value, there.errors.get(name)) for name, value in table.items() if name != "kind")
        present = "" if there.share is None else f"{there.share:.1%} there"
        size = f"{there.lost} lost" if title == "dropout" else present
        lines.append((title, table["kind"], told, size, "", ""))
    header = ("phase", "law", "parameters, standard errors", "times", "KS distance", "AIC above the least")
    print_table("laws (compute: of one sample)", lines, header)


def _told(name: str, value: object, error: float | None) -> str:
    if isinstance(value, list):
        return f"{len(value)} quantiles from {min(value):.4g} to {max(value):.4g} s"
    return f"{name} {value:.4g}" + (f" +- {error:.2g}" if error else "")


def _print_agreement(one: "Agreement") -> None:
    from fedsim.calibration.agreement import LEVELS

    rows = [("measured", one.sizes[0], one.means_s[0], one.measured_s)]
    rows += [("simulated", one.sizes[1], one.means_s[1], one.simulated_s)]
    lines = [(name, str(size), f"{mean_s:.4g}", *(f"{value:.4g}" for value in at)) for name, size, mean_s, at in rows]
    header = ("seconds", "number", "mean", *(f"{level * _PER_CENT:g} %" for level in LEVELS))
    print_table(f"{one.title}: KS distance {one.distance:.3f}, p = {one.p_value:.2g}", lines, header)
