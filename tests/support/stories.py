"""What happened in a run, as rows and lines that a test can write down beside it."""

import re


def rows(table, *names):
    return [tuple(row[name] for name in names) for row in table.to_pylist()]


def told(story):
    """Return a story of lines "second what; what" as a list of pairs; a line without a second goes on with the last."""
    pairs = []
    for line in story.strip().splitlines():
        second, what = re.fullmatch(r" *([\d.]+ )? *(.+)", line).groups(pairs[-1][0] if pairs else None)
        pairs += [(float(second), each) for each in what.removesuffix(";").split("; ")]
    return pairs


def ends(history):
    return history.column("rounds", "end_s").tolist()


def used(history):
    """Return the clients whose updates went into each round's aggregate."""
    members = history.participations.to_pylist()
    return [
        [row["client"] for row in members if row["served_round"] == number]
        for number in history.column("rounds", "round")
    ]


def timeline(history):
    """Return all that happened as a list of (second, what), in the order of time; at equal times as listed here."""
    happened = []
    for row in history.rounds.to_pylist():
        happened += [
            (row["start_s"], 3, f"round {row['round']} begins"),
            (row["end_s"], 2, f"round {row['round']} ends with model {row['model_version']}"),
        ]
    for row in history.participations.to_pylist():
        client = f"client {row['client']}"
        happened += [
            (row["start_s"], 4, f"{client} starts from {row['start_version']}"),
            (row["end_s"], 1, f"{client} {_ENDS[row['cut_in'] is None, row['outcome'] == 'dropped']}: {row['fate']}"),
        ]
    return [(time_s, what) for time_s, _, what in sorted(happened)]


_ENDS = {(True, False): "arrives", (False, False): "is cut off", (False, True): "is lost"}
