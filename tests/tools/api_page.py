"""Prints the page of all public names, made of their signatures and docstrings; ``--write`` puts it into fedsim/API.md.

python tests/tools/api_page.py --write
"""

import importlib
import inspect
import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

import fedsim  # noqa: E402 - found beside this script
from fedsim.lazy import names_of  # noqa: E402
from tests.support.public_names import DOORS, Member, is_protocol, members, sections  # noqa: E402

PAGE = ROOT / "fedsim" / "API.md"
HEAD = """# Public names

<!-- written by tests/tools/api_page.py -->

Written from signatures and docstrings by `python tests/tools/api_page.py --write`. What stands here, and the kinds that
`fedsim list` prints, follows the versions of fedsim (`fedsim/README.md`, Versions); all else may change at any time.
`help(fedsim.simulate)` prints a whole docstring with results and errors, and each name leads to its file. Contracts
of parts with their members stand in `fedsim/answers/README.md`. Units end names: `_s`, `_bits`, `_bps`, `_hz`, `_m`,
`_db`, `_dbm`, `_j`, `_w`. Shapes are those of NumPy's arrays; K is the number of clients.
"""
LONGEST_DEFAULT = 24
TITLES = ("Parameters", "Attributes")
"""Sections of a docstring that are shown; `help` prints all of them."""


def page() -> str:
    return HEAD + "".join(map(section, DOORS))


def section(room: str) -> str:
    module = importlib.import_module(room)
    told = f"\n## {room}\n\n{first_sentence(inspect.getdoc(module) or '')}\n"
    names = sorted(names_of(room), key=str.lower)
    if room == "fedsim.testing":  # checks have like arguments: the part, and the size and seed of the trial
        return f"{told}\n| check | what it does |\n|---|---|\n" + "".join(
            row(name, getattr(module, name)) for name in names
        )
    return told + "".join(in_full(name, getattr(module, name)) for name in names)


def row(name: str, value: object) -> str:
    about = first_sentence(inspect.cleandoc(value.__doc__ or ""))
    return f"| {link(name, value)}{arguments(value)} | {cell(about)} |\n"


def in_full(name: str, value: object) -> str:
    bases = value.__mro__ if inspect.isclass(value) else (value,)
    texts = [inspect.cleandoc(base.__doc__ or "") for base in bases if base.__module__.startswith("fedsim")]
    parts: dict[str, str] = {}
    for text in reversed(texts):
        for title, body in sections(text).items():
            parts[title] = f"{parts.get(title, '').rstrip()}\n{body}"
    rows = "".join(entries(parts[title]) for title in TITLES if title in parts)
    own = [one for one in members() if one.owner is value and one.found.__module__.startswith("fedsim")]
    for one in sorted(own, key=lambda each: each.found.__name__):
        shown = "" if one.is_property else called_with(one)
        rows += f"| `.{one.found.__name__}{shown}` | {cell(first_sentence(one.text))} |\n"
    return f"\n{row(name, value)}|---|---|\n{rows}"


def entries(text: str) -> str:
    found: list[tuple[str, list[str]]] = []
    for line in text.splitlines():
        if line and not line[0].isspace():
            head, _, rest = line.partition(" : ")
            found.append((head, [rest]))
        elif found:
            found[-1][1].append(line.strip())
    return "".join(f"| `{head}` | {cell(' '.join(filter(None, rest)))} |\n" for head, rest in found)


def link(name: str, value: object) -> str:
    path = Path(inspect.getfile(inspect.unwrap(value)))
    return f"[`{name}`]({path.relative_to(Path(fedsim.__file__).parent).as_posix()})"


def arguments(value: object) -> str:
    if not (inspect.isclass(value) or inspect.isfunction(value)) or not value.__module__.startswith("fedsim"):
        return ""
    if inspect.isclass(value) and is_protocol(value):
        return ""
    shown = called_with(Member(value))
    return f" `{shown}`" if shown != "()" else ""


def called_with(member: Member) -> str:
    """Return the names of arguments with their defaults, long ones as ``...``."""
    shown, starred = [], False
    try:
        parameters = inspect.signature(member.found).parameters
    except ValueError:
        return "()"
    for name, parameter in parameters.items():
        if name not in member.parameters or name.startswith("_"):
            continue
        if parameter.kind is parameter.KEYWORD_ONLY and not starred:
            shown, starred = [*shown, "*"], True
        starred = starred or parameter.kind is parameter.VAR_POSITIONAL
        before = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
        default = "" if parameter.default is parameter.empty else f"={short(parameter.default)}"
        shown.append(f"{before}{name}{default}")
    return f"({', '.join(shown)})"


def short(default: object) -> str:
    """Return a default as code; what is long, or has no code of its own, as ``...``."""
    code = repr(default)
    plain = default is None or isinstance(default, bool | int | float | str | tuple)
    return code if plain and len(code) <= LONGEST_DEFAULT else "..."


def first_sentence(text: str) -> str:
    """Return the first paragraph of a docstring up to its first full stop, on one line."""
    paragraph = " ".join(text.partition("\n\n")[0].split())
    return re.split(r"(?<=\.)\s", paragraph, maxsplit=1)[0].replace("``", "`")


def cell(text: str) -> str:
    return text.replace("``", "`").replace("|", r"\|")


if __name__ == "__main__":
    if "--write" in sys.argv:
        PAGE.write_text(page())
    else:
        sys.stdout.write(page())
