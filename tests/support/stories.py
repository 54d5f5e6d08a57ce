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
