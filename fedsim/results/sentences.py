"""What a run came to and why, as sentences: seconds to a target, what rounds are spent on, who was lost, deadlines."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from fedsim.history import History
from fedsim.history.accounting import SECURE
from fedsim.history.analyses.explaining import PARTS
from fedsim.history.analyses.gaps import Models
from fedsim.history.analyses.lost import Lost
from fedsim.history.outcomes import PHASES
from fedsim.history.tables import Goal
from fedsim.units import counted, in_seconds

PART_NAMES: Final = dict(
    zip(
        PARTS,
        ("before its clients begin", "downlink", "work", "queue", "uplink", "waiting for the slowest", "unmasking"),
        strict=True,
    )
)
_WORDS: Final = {"downlink": "downlink", "compute": "work", "uplink": "uplink", SECURE: "secure aggregation"}
_USED_LATE: Final = {"outcome": "late", "fate": "stale-used"}
_ROUNDING: Final = 1e-9
"""Share that may be one of sums."""
_OFTEN: Final = 2
"""Rounds of one client below which it is no cause of their lengths."""


class RunAgain(Protocol):
    """How a user runs the scenario of a history again with other values."""

    def __call__(self, values: Mapping[str, Any], name: str) -> str:
        """Return a command, or a line of Python; the name tells the new run from others."""
        ...


def in_python(values: Mapping[str, Any], name: str) -> str:
    """Return the line of Python that runs a scenario with other values, whose history needs no name."""
    del name
    return f"simulate(scenario.replace({dict(values)!r}))"


def sentences(
    history: History,
    deadlines_s: Sequence[float] = (),
    beside: Mapping[str, History] | None = None,
    again: RunAgain = in_python,
) -> list[str]:
    """Return what a run came to and why, the most useful first."""
    others = dict(beside or {})
    first, *rest = history.explain(*others.values(), **history.goal.asked).to_pylist()
    found = [
        "" if history.unfinished is None else f"This run is not whole, {history.unfinished}: numbers are those so far.",
        _to_target(history, first),
        _not_evaluated(history, again),
        *(_compared(history.goal, first, row | {"run": name}) for name, row in zip(others, rest, strict=True)),
        _ended(history),
        *_lost(history),
        *_kept(history, again),
        *(_deadline(history, row, again) for row in history.deadline_whatif(list(deadlines_s)).totals().to_pylist()),
    ]
    return [sentence for sentence in found if sentence]


def _to_target(history: History, row: Mapping[str, Any]) -> str:
    goal, rounds, seconds = history.goal, row["rounds"], row["seconds"]
    if not rounds:
        return f"The first model has {goal} already, at 0 s." if row["reached"] else "No round was over."
    between_s = seconds - history.column("rounds", "duration_s")[:rounds].sum()
    waits = " with the waits between them" if between_s > 0.005 * seconds else ""
    each = f"{counted(rounds, 'round')} of {in_seconds(row['round_s'])} s{waits}"
    said = {
        None: f"{each} took {in_seconds(seconds, 6)} s{_without(history)}.",
        True: f"{goal} is first reached at {in_seconds(seconds, 4)} s: {each}.",
        False: f"{goal} is {_never(history)}: {each}, {in_seconds(seconds, 6)} s in all.",
    }[row["reached"]]
    parts = sorted(((row[part] or 0.0, name) for part, name in PART_NAMES.items()), reverse=True)
    spent = [f"{name} {seconds / row['round_s']:.0%}" for seconds, name in parts if seconds > 0.005 * row["round_s"]]
    return f"{said} A mean round is {', '.join(spent)}." if spent else said


def _never(history: History) -> str:
    """Return that a target is not reached, as far as models were evaluated."""
    known = (Models.of(history).row[1:] >= 0).all()
    return "never reached" if known else "reached by no evaluation, and not all models were evaluated"


def _not_evaluated(history: History, again: RunAgain) -> str:
    """Return from when on models were not evaluated that may have reached the target sooner; empty without any."""
    if not history.evaluations.num_rows:
        return ""
    first_s, after_s, _ = history.reached(**history.goal.asked)
    if first_s is None or after_s is None or after_s >= first_s:
        return ""
    return (
        f"It may be sooner: models from {in_seconds(after_s, 4)} s on were not evaluated; to see it: "
        f"{again({'results.evaluate_every': 1}, 'every')}"
    )


def _without(history: History) -> str:
    """Return why a run has no accuracy, with the last value of each metric that it has."""
    if not history.evaluations.num_rows:
        return "; nothing is learned"
    last = {name: history.metric(name)[-1] for name in history.metrics} | {
        "loss": history.column("evaluations", "loss")[-1]
    }
    return f"; it has no accuracy, and ends with {', '.join(f'{name} {value:.4g}' for name, value in last.items())}"


def _compared(goal: Goal, one: Mapping[str, Any], other: Mapping[str, Any]) -> str:
    """Return which factor makes the difference between two runs."""
    if one["reached"] is not other["reached"] or not one["seconds"] or not other["seconds"]:
        what = {True: f"reaches {goal}", False: f"never reaches {goal}", None: f"has no {goal.metric}"}
        return f"{other['run']}: {what[other['reached']]}, so that no factor is known."
    ratio, rounds, each = (other[name] / one[name] for name in ("seconds", "rounds", "round_s"))
    said = (
        f"{other['run']}: {in_seconds(other['seconds'], 4)} s, {ratio:.2f} times as long = {rounds:.2f} times the "
        f"rounds x {each:.2f} times the seconds a round"
    )
    by_part = [
        (other[part] - one[part], name) for part, name in PART_NAMES.items() if None not in (one[part], other[part])
    ]
    if not by_part:
        return f"{said}."
    most_s, name = max(by_part, key=lambda part: abs(part[0]))
    return f"{said}, most by {name} ({most_s:+.3g} s)."


def _ended(history: History) -> str:
    path = history.critical_path()
    rows = path.to_pylist()
    total_s = sum(row["duration_s"] for row in rows)
    if not rows or not total_s:
        return ""
    causes = Counter(row["cause"] if row["phase"] is None else row["phase"] for row in rows)
    cause, count = causes.most_common(1)[0]
    lasted_s = sum(row["duration_s"] for row in rows if cause in (row["cause"], row["phase"]))
    what = {"deadline": "the deadline", "wait": "no update, after a wait", "restart": "a crash of the server"}
    by = what.get(cause, f"the {_WORDS.get(cause, cause)} of the last client")
    edges = "" if history.edge_rounds is None else " of edge servers"
    share = percent(lasted_s / total_s, 0)
    said = f"Of {counted(len(rows), 'round')}{edges} {count:,} ended with {by}, {share} of the time"
    named = Counter(row["client"] for row in rows if row["phase"] == cause)
    client, often = named.most_common(1)[0] if named else (None, 0)
    if often < _OFTEN:
        return f"{said}."
    return f"{said}; most often by client {client} ({often:,})."


def _lost(history: History) -> list[str]:
    table = history.lost()
    late, dropped = (pc.sum(table.column(name)).as_py() or 0 for name in ("late", "dropped"))
    if not late + dropped:
        return []
    started = history.participations.num_rows
    in_phase = [(pc.sum(table.column(phase)).as_py(), _WORDS[phase]) for phase in PHASES]
    where = ", ".join(f"{count:,} in the {phase}" for count, phase in sorted(in_phase, reverse=True) if count)
    how = f"{late:,} late, {dropped:,} dropped" if late and dropped else "all late" if late else "all dropped"
    became = (pc.equal(history.participations.column(name), value) for name, value in _USED_LATE.items())
    used = pc.sum(pc.and_(*became)).as_py() or 0
    return [
        f"{'Not in time' if used else 'Lost'} were {late + dropped:,} of {counted(started, 'participation')}, {how}, "
        f"of {_clients(history, table.num_rows)}; {where}{f'; {used:,} of them were used later' * bool(used)}."
    ]


def _clients(history: History, count: int) -> str:
    return (
        counted(count, "client")
        if history.clients is None
        else f"{count:,} of {counted(history.clients.num_rows, 'client')}"
    )


def _kept(history: History, again: RunAgain) -> list[str]:
    """Return which deadlines would have kept the late ones, and how they are had where that is not seen."""
    found = Lost.of(history)
    if not found.late.any():
        return []
    rows = history.deadlines_that_keep().to_pylist()
    seen = [row for row in rows if row["about_s"] is not None]
    what, least = "Giving up after" if found.one_by_one else "A deadline of", "at least " * (len(seen) < len(rows))
    said = f"{what} {_shares(seen, least)} of the late ones. " if seen else ""
    if all(row["deadline_s"] is not None for row in rows):
        return [said.rstrip()]
    why = "For exact seconds"
    if len(seen) < len(rows):
        which = "What would have kept the rest" if seen else "A deadline that would have kept them"
        why = f"{which} cannot be seen in this history, which cancels late clients; to see it"
    if found.one_by_one:
        # Such servers have a rule of their own for late clients.
        longer_s = float(f"{4 * found.limit_s[found.late].max():.3g}")
        return [f"{said}{why}: {again({'rounds.policy.give_up_s': longer_s}, f'give-up-{longer_s:g}')}"]
    if found.goes_on:
        return [f"{said}{'The others were on their way as the run ended.' if len(seen) < len(rows) else ''}".rstrip()]
    return [f"{said}{why}: {again({'rounds.late.kind': 'drop'}, 'late-drop')}"]


def _shares(rows: Sequence[Mapping[str, Any]], least: str) -> str:
    """Return deadlines and the shares of late clients that each would have kept, in words."""
    about = ["about " * (row["deadline_s"] is None) for row in rows]
    first, *rest = (
        f"{near}{in_seconds(rounded_up(row['about_s']))} s{{}} {row['share']:.0%}"
        for near, row in zip(about, rows, strict=True)
    )
    return ", ".join([first.format(f" would have kept {least}".rstrip()), *(one.format("") for one in rest)])


def _deadline(history: History, row: Mapping[str, Any], again: RunAgain) -> str:
    deadline_s = row["deadline_s"]
    of_edges = "" if history.edge_rounds is None else " of the rounds of edge servers"
    if row["saved_s"] is None:
        why, given_s = "whose rounds lost clients earlier", float(f"{deadline_s:.6g}")
        values: dict[str, Any] = {"rounds.policy.kind": "deadline", "rounds.policy.deadline_s": given_s}
        if Lost.of(history).one_by_one:
            why, values = (
                "whose clients are sent one by one, and given up one by one",
                {"rounds.policy.give_up_s": given_s},
            )
        return (
            f"A deadline of {deadline_s:g} s cannot be seen in this history, {why}; to see it: "
            f"{again(values, f'deadline-{deadline_s:g}')}"
        )
    updates = counted(row["late"], "used update")
    became = f"lost {updates} ({percent(row['lost_share'])})"
    if row["lost"] < row["late"]:
        became = f"made {updates} late, for later rounds to use"
    return (
        f"A deadline of {deadline_s:g} s would have saved {in_seconds(row['saved_s'], 4)} s{of_edges} "
        f"({percent(row['saved_share'])}) and {became}, every round taken as it was."
    )


def spent_table(rows: pa.Table, names: Sequence[str]) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Return header and lines of what rounds were spent on, a line for each run; parts without seconds are left out."""
    parts = [part for part in PARTS if any(row[part] for row in rows.to_pylist())]
    header = ("run", "target s", "rounds", "s a round", *(PART_NAMES[part].split()[0] for part in parts))
    lines = [
        (
            name,
            in_seconds(row["seconds"], 4) if row["reached"] else "-" if row["reached"] is None else "never",
            f"{row['rounds']:,}",
            "-" if row["round_s"] is None else in_seconds(row["round_s"]),
            *("-" if row[part] is None else in_seconds(row[part]) for part in parts),
        )
        for name, row in zip(names, rows.to_pylist(), strict=True)
    ]
    return header, lines


def fixed(value: float, decimals: int = 1) -> str:
    """Return a number with some decimals, or with three digits where too little would be left of it."""
    return f"{value:,.{decimals}f}" if value == 0 or value >= 10 ** (1 - decimals) else f"{value:.3g}"


def percent(share: float, decimals: int = 1) -> str:
    """Return a share as per cent, with decimals enough that all but a few is not 100 %, and a few not 0 %."""
    least = min(share, 1 - share)
    return f"{share:.{max(decimals, -math.floor(math.log10(least)) - 2) if least > _ROUNDING else decimals}%}"


def rounded_up(seconds: float) -> float:
    """Return seconds with three digits, and not less: an arrival at the unrounded instant is in time."""
    step = 10.0 ** (math.floor(math.log10(seconds)) - 2) if seconds > 0 else 1e-3
    return float(f"{math.ceil(round(seconds / step, 9)) * step:.3g}")
