"""A report of a run as tables of text: time, bits and energy by fate, causes of the rounds' lengths, deadlines."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from fedsim.history import History
from fedsim.history.accounting import shares_of
from fedsim.history.analyses.lost import Lost
from fedsim.history.fairness import judged_by, last_spread
from fedsim.history.what_if import arrivals_s
from fedsim.results.sentences import fixed, percent, rounded_up, spent_table
from fedsim.units import in_seconds

_QUANTILES: Final = (0.5, 0.75, 0.9, 0.95, 0.99)
_NAMED_CLIENTS: Final = 5
_LOST_CLIENTS: Final = 4
_OF_CLIENTS: Final = {
    "distance m": ("distance_m", 1.0),
    "downlink SNR dB": ("downlink_snr_db", 1.0),
    "uplink SNR dB": ("uplink_snr_db", 1.0),
    "downlink Mbit/s": ("downlink_bps", 1e-6),
    "uplink Mbit/s": ("uplink_bps", 1e-6),
    "samples per s": ("samples_per_s", 1.0),
    "Gflop/s": ("flops_per_s", 1e-9),
    "training samples": ("samples", 1.0),
    "different labels": ("classes", 1.0),
    "battery J": ("capacity_j", 1.0),
}
"""Line of the page of the clients: column and unit."""


class Page(NamedTuple):
    """One table of a report: title, header and lines, all as text."""

    title: str
    header: tuple[str, ...]
    lines: Sequence[tuple[str, ...]]


def overview(history: History, name: str = "", beside: Mapping[str, History] | None = None) -> list[Page]:
    """Return the tables that answer most: what rounds are spent on, in this run and in others, and who was lost."""
    others = dict(beside or {})
    pages = []
    if history.rounds.num_rows:
        rows = history.explain(*others.values(), **history.goal.asked)
        known = rows.column("reached").null_count < rows.num_rows
        target = f"to {history.goal}, and " if known else ""
        title = f"{target}what a mean round is spent on"
        pages.append(Page(title, *spent_table(rows, [name or history.name, *others])))
    if history.lost().num_rows:
        pages.append(_lost(history))
    return pages


def report(
    history: History,
    deadlines_s: Sequence[float] = (),
    *,
    every_round: bool = False,
    name: str = "",
    beside: Mapping[str, History] | None = None,
) -> list[Page]:
    critical, cloud = history.critical_path(), history.cloud_path()
    pages = [] if history.unfinished is None else [_unfinished(history.unfinished)]
    pages += overview(history, name, beside)
    if history.participations.num_rows:
        pages.append(_fates(history))
    if history.rounds.num_rows:
        pages.append(_causes("causes of the lengths of rounds", critical, "missing"))
    if cloud is not None:
        pages.append(_causes("causes of the lengths of the cloud's rounds", cloud, "phase_s"))
    if any(cause == "client" for cause in critical.column("cause").to_pylist()):
        pages.append(_slowest(critical))
    if history.clients is not None:
        pages.append(_clients(history.clients))
    by = judged_by(history)
    if last_spread(history, by) is not None:
        pages.append(_fairness(history, by))
    arrival_s = arrivals_s(history)
    wanted_s: Sequence[float] = deadlines_s
    if arrival_s.size and not deadlines_s and not Lost.of(history).one_by_one:
        quantiles_s = np.quantile(arrival_s, _QUANTILES, method="inverted_cdf")
        wanted_s = sorted({rounded_up(max(value, 0.0)) or 1e-3 for value in quantiles_s.tolist()})
    if wanted_s:
        pages.append(_deadlines(history, wanted_s))
    if every_round:
        pages.append(_rounds(critical))
    return pages


def _lost(history: History) -> Page:
    table = history.lost()
    columns = {
        "client": "client",
        "selected": "selected",
        "late": "late",
        "dropped": "dropped",
        "in downlink": "downlink",
        "in work": "compute",
        "in uplink": "uplink",
        "late by s": "missed_by_s",
        "late by about s": "missed_by_about_s",
    }
    if table.column("missed_by_s").null_count < table.num_rows:
        del columns["late by about s"]
    rows = table.slice(0, _LOST_CLIENTS).to_pylist()
    there = {title: name for title, name in columns.items() if name == "client" or any(row[name] for row in rows)}
    lines = [tuple(_number(row[name]) for name in there.values()) for row in rows]
    return Page("clients that were late or lost most often", tuple(there), lines)


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:,}" if isinstance(value, int) else in_seconds(value)


def _unfinished(what: str) -> Page:
    """Return the page that says that a run is not whole, so that its numbers are those of its first rounds."""
    return Page("this run is not whole", (), [("status", what), ("numbers", "those of the rounds so far")])


def _fates(history: History) -> Page:
    rows = [row for row in history.by_fate().to_pylist() if row["participations"]]
    table: dict[str, Any] = {name: [row[name] for row in rows] for name in rows[0]}
    forms: dict[str, tuple[str, Callable[[float], str]]] = {
        "participations": ("participations", "{:,.0f}".format),
        **{f"{name} s": (f"{name}_s", fixed) for name in ("downlink", "compute", "queue", "uplink")},
        "share of time": ("time_share", percent),
        **{f"Mbit {way}": (f"{way}link_bits", lambda bits: fixed(1e-6 * bits)) for way in ("down", "up")},
        "share of bits": ("bits_share", percent),
    }
    table["work_share"] = shares_of(table["compute_s"])
    forms["share of work"] = ("work_share", percent)
    if any(table["energy_j"]):
        table["energy_share"] = shares_of(table["energy_j"])
        forms["energy J"] = ("energy_j", fixed)
        forms["share of energy"] = ("energy_share", percent)
    lines = [(title, *map(form, table[name])) for title, (name, form) in forms.items() if any(table[name])]
    header = ("", *(fate.replace("wasted-", "wasted\n") for fate in table["fate"]))
    return Page("time and bits of the clients by fate", header, lines)


def _fairness(history: History, by: str) -> Page:
    """Return the spread over the clients, in each evaluation on local test samples, of accuracy or of a metric."""
    tenths, form = (("worst", "best"), "{:.1%}") if by == "accuracy" else (("lowest", "highest"), "{:.4g}")
    header = ("round", "clients", "mean", "deviation", *(f"{one} tenth" for one in tenths), "Jain's index")
    names = ("mean", "std", "worst_decile", "best_decile")
    lines = [
        (str(row["round"]), f"{row['clients']:,}", *(form.format(row[name]) for name in names), f"{row['jain']:.4f}")
        for row in history.fairness(by).to_pylist()
    ]
    return Page(f"{by} of the model on local test samples", header, lines)


def _causes(title: str, critical: pa.Table, column: str) -> Page:
    """Return the rounds and the seconds of each cause, and the mean of a column over its rounds."""
    rows = critical.to_pylist()
    causes = [row["cause"] if row["phase"] is None else f"{row['cause']}: {row['phase']}" for row in rows]
    total_s = sum(row["duration_s"] for row in rows)
    lines: list[tuple[str, ...]] = []
    for cause in sorted(set(causes), key=lambda cause: (-causes.count(cause), cause)):
        mine = [row for row, one in zip(rows, causes, strict=True) if one == cause]
        seconds = sum(row["duration_s"] for row in mine)
        share = seconds / total_s if total_s else 0.0
        mean = "-" if mine[0][column] is None else f"{sum(row[column] for row in mine) / len(mine):.1f}"
        lines.append((cause, f"{len(mine):,}", fixed(seconds, 2), percent(share), mean))
    what = {"missing": "missing clients a round", "phase_s": "mean s of the phase"}[column]
    return Page(title, ("ended by", "rounds", "seconds", "of the time", what), lines)


def _slowest(critical: pa.Table) -> Page:
    rows = [row for row in critical.to_pylist() if row["cause"] == "client"]
    clients = [row["client"] for row in rows]
    lines: list[tuple[str, ...]] = []
    for client in sorted(set(clients), key=lambda client: (-clients.count(client), client))[:_NAMED_CLIENTS]:
        mine = [row for row in rows if row["client"] == client]
        phases = [row["phase"] for row in mine]
        often = max(sorted(set(phases)), key=phases.count)
        mean_s = sum(row["phase_s"] for row in mine if row["phase"] == often) / phases.count(often)
        lines.append((str(client), f"{len(mine):,}", often, fixed(mean_s, 3)))
    return Page("clients that ended most rounds", ("client", "rounds", "phase", "mean s"), lines)


def _clients(clients: pa.Table) -> Page:
    known = {title: clients.column(name).drop_null().to_numpy() * unit for title, (name, unit) in _OF_CLIENTS.items()}
    labels = clients.column("labels").drop_null().to_pylist()
    known["share of the commonest label"] = np.array([max(counts) / sum(counts) for counts in labels if any(counts)])
    lines = [
        (title, *(f"{value:,.4g}" for value in (values.min(), np.median(values), values.max())))
        for title, values in known.items()
        if values.size
    ]
    return Page("clients before the first round", ("", "least", "median", "greatest"), lines)


def _deadlines(history: History, deadlines_s: Iterable[float]) -> Page:
    whatif = history.deadline_whatif(list(deadlines_s))
    used, became = max(int(whatif.used.sum()), 1), "late" if whatif.used_later else "lost"
    header = ("deadline s", "seconds saved", "of the time", f"used updates {became}", "of all used", "rounds shortened")
    lines = [
        (
            f"{row['deadline_s']:g}",
            fixed(row["saved_s"], 2),
            percent(row["saved_share"]),
            f"{row['late']:,}",
            percent(row["late"] / used),
            f"{row['shortened']:,}",
        )
        if row["saved_s"] is not None
        else (f"{row['deadline_s']:g}", "cannot be seen in this history", *["-"] * 4)
        for row in whatif.totals().to_pylist()
    ]
    return Page("effect of deadlines, every round taken as it was", header, lines)


def _rounds(critical: pa.Table) -> Page:
    header = ("edge", "round", "seconds", "ended by", "client", "phase", "phase s", "missing")
    lines = [
        (
            "-" if row["edge"] is None else str(row["edge"]),
            str(row["round"]),
            fixed(row["duration_s"], 3),
            row["cause"],
            "-" if row["client"] is None else str(row["client"]),
            row["phase"] or "-",
            "-" if row["phase_s"] is None else fixed(row["phase_s"], 3),
            str(row["missing"]),
        )
        for row in critical.to_pylist()
    ]
    return Page("every round", header, lines)
