"""Random damage to texts and files, and random command lines."""

from collections.abc import Sequence
from typing import Final

from tests.support.seeded_draws import Seeded

_TOKENS: Final = (
    *("[", "]", "[[", "]]", "{", "}", "=", ".", ",", '"', "'", '"""', "#", "\n", "\r", "\t", " ", "\\", "\0", "\ufeff"),
    *("nan", "inf", "-inf", "-", "+", "0", "1e999", "1e-400", "9" * 5000, "0x", "0b2", "_", "true", "false"),
    *("1979-05-27T07:32:00Z", "07:32:00", "é", "\u202e", "😀", "\ud800"),
    *("[" * 3000, "a." * 3000 + "b = 1", "kind", "[x]"),
)
_OTHERS: Final = (b"\0", b"{}", b"[]", b"null", b"1", b"\xff" * 40, b"PK\x03\x04", b"PAR1", b"SQLite format 3\0")
_BYTES: Final = (b"\xff", b"\x80", b"\xc3", b"\0", b"\xef\xbb\xbf")


def random_text(draws: Seeded, text: str) -> bytes:
    """Return a text with one to five changes: signs cut, doubled, moved, or replaced by signs with a meaning."""
    for _ in range(draws.pick(range(1, 6))):
        start = draws.pick(range(len(text) + 1))
        end = min(len(text), start + draws.pick((0, 1, 1, 2, 5, 20)))
        part = text[start:end]
        change = draws.pick(("cut", "double", "move", "token", "token", "lines"))
        if change == "cut":
            text = text[:start] + text[end:]
        elif change == "double":
            text = text[:end] + part + text[end:]
        elif change == "move":
            rest, at = text[:start] + text[end:], draws.pick(range(len(text) - len(part) + 1))
            text = rest[:at] + part + rest[at:]
        elif change == "lines":
            lines = text.splitlines(keepends=True) or [""]
            lines.insert(draws.pick(range(len(lines) + 1)), draws.pick(lines))
            text = "".join(lines)
        else:
            text = text[:start] + draws.pick(_TOKENS) + text[end:]
    content = text.encode("utf-8", "surrogatepass")
    if draws.chance(10):
        at = draws.pick(range(len(content) + 1))
        content = content[:at] + draws.pick(_BYTES) + content[at:]
    return content


def damaged(draws: Seeded, content: bytes) -> bytes:
    """Return a file with bits turned, cut short, with bytes removed or put in, of zeros, or of something else."""
    kind = draws.pick(("bits", "bits", "short", "removed", "put in", "zeros", "other", "swapped"))
    at = draws.pick(range(len(content))) if content else 0
    end = at + draws.pick((1, 2, 4, 8, 50, 500))
    others = {
        "short": content[:at],
        "removed": content[:at] + content[end:],
        "put in": content[:at] + bytes(draws.pick(range(256)) for _ in range(4)) + content[at:],
        "zeros": content[:at] + bytes(len(content[at:end])) + content[end:],
        "other": draws.pick(_OTHERS),
        "swapped": content[at:] + content[:at],
    }
    if kind in others or not content:
        return others.get(kind, b"")
    changed = bytearray(content)
    for _ in range(draws.pick((1, 1, 2, 5))):
        changed[draws.pick(range(len(content)))] ^= 1 << draws.pick(range(8))
    return bytes(changed)


_VALUES: Final = (
    *("case.toml", "run", "missing", "", ".", "..", "/", "x" * 300, "\udcff", "[bold]x", "-", "--", "-1", "0"),
    *("1", "1e9", "nan", "inf", "time", "round", "accuracy", "loss", "leakage", "duration", "selectors", "networks"),
    *("digits", "mnist", "x.png", "x.pdf", "x.xyz", "folder/x.svg", "all", "last", "every 2", "every 0", "every x"),
    *("cpu", "cuda", "sequential", "processes", "ray", "no-such", "float32", "bfloat16", "module:Class"),
    *("2 GiB", "-5 B", "mean_round_s", "time_to_80%", "mean_round_s,bits", "0.95", "1,2", "rounds=3"),
    *("bits within 5%", "morris", "x.csv"),
    *("selector.cohort=1,2", "selector.cohort=1..2", "rounds.policy.deadline_s=1.2.3..4", "rounds.count=1e9..1e999"),
    *("seed=3", "seed", "=", "a.b=c", "rounds.count=1", "rounds.count=-1", "selector.kind=uniform", "x" * 5000),
    *("network.kind=cell", "devices.availability={kind='bernoulli'}", "name=a/b", "results.audit=1", "crowd=3"),
)
_OPTIONS: Final = (
    *("--set", "--out", "--data-dir", "--force", "--executor", "--device", "--precision", "--store", "--no-store"),
    *("--keep-models", "--save-models", "--no-plugins", "--quiet", "-q", "--x", "--y", "--smoothing", "--deadline"),
    *("--by", "--base", "--clients", "--samples", "--held-out", "--simulate", "--rounds-table"),
    *("--rounds", "--to", "--older-than", "--yes", "--help", "--unknown", "--version"),
    *("--grid", "--zip", "--seeds", "--metric", "--horizon", "--baseline", "--level", "--until", "--plan", "--plot"),
    *("--why", "--sensitivity", "--factor", "--method", "--over", "--for", "--trials", "--quantile"),
)
_COMMANDS: Final[Sequence[tuple[str, ...]]] = (
    *(("run",), ("run", "case.toml"), ("run", "case.toml", "--out", "other"), ("check", "case.toml"), ("check",)),
    *(("plot", "run"), ("plot",), ("plot", "run", "--out", "x.png"), ("report", "run"), ("report",), ("list",)),
    *(("data",), ("store",), ("store", "check"), ("store", "trim"), ("store", "clear"), ("unknown",), ()),
    *(("sweep",), ("sweep", "case.toml", "--grid", "selector.cohort=1,2", "--seeds", "1"), ("compare", "run", "run")),
    *(("whatif", "run"), ("whatif", "run", "--sensitivity")),
    *(("steady", "case.toml"), ("steady", "run", "--rounds", "2")),
    ("best", "case.toml", "--trials", "1", "--over", "selector.cohort=1..2", "--for", "mean_round_s"),
    *(("calibrate",), ("calibrate", "run"), ("calibrate", "run/participations.parquet", "--by", "client", "--force")),
)


def random_line(draws: Seeded) -> list[str]:
    """Return the arguments of a command, with options and values that fit or do not."""
    line = list(draws.pick(_COMMANDS))
    for _ in range(draws.pick((0, 1, 1, 2, 3))):
        more = [draws.pick(_OPTIONS)] if draws.chance(70) else []
        more += [draws.pick(_VALUES)] if draws.chance(70) else []
        at = len(line) if draws.chance(80) else draws.pick(range(len(line) + 1))
        line[at:at] = more
    return line
