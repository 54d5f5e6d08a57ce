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
from tests.support.public_names import DOORS, Member, contracts, is_protocol, members, sections  # noqa: E402

PAGE = ROOT / "fedsim" / "API.md"
HEAD = """# Public names

<!-- written by tests/tools/api_page.py -->

Written from signatures and docstrings by `python tests/tools/api_page.py --write`. What stands here, and the kinds that
`fedsim list` prints, follows the versions of fedsim (`fedsim/README.md`, Versions); all else may change at any time.
`help(fedsim.simulate)` prints a whole docstring, and each name leads to its file. Units stand in
names: `_s`, `_bits`, `_bps`, `_hz`, `_m`, `_db`, `_dbm`, `_j`, `_w`. Shapes are those of NumPy's arrays; K is the
number of clients.
"""
LONGEST_DEFAULT = 24


def page() -> str:
    return HEAD + "".join(map(section, DOORS)) + contracts_section()


def section(room: str) -> str:
    module = importlib.import_module(room)
    told = f"\n## {room}\n\n{first_sentence(inspect.getdoc(module) or '')}\n"
    return told + "".join(in_full(name, getattr(module, name)) for name in sorted(module.__all__, key=str.lower))


def contracts_section() -> str:
    """Return what parts of a user's own keep to: each contract with its members."""
    lines = ["\n## Contracts\n\nWhat a part of your own derives from or looks like, and its checked members.\n"]
    lines.append("\n| part | contract | members |\n|---|---|---|\n")
    for contract in contracts():
        protocol = contract.protocol
        place = f"`{protocol.__module__}.{protocol.__qualname__}`"
        lines.append(f"| {contract.noun} | {place} | {', '.join(f'`{name}`' for name in contract.members)} |\n")
    return "".join(lines)


def in_full(name: str, value: object) -> str:
    """Return the paragraph about a name: what it is called with, what that means, and its methods."""
    told = f"\n### {name}\n\n{link(name, value)}{arguments(value)}\n\n{about(value)}\n"
    bases = value.__mro__ if inspect.isclass(value) else (value,)
    texts = [inspect.cleandoc(base.__doc__ or "") for base in bases if base.__module__.startswith("fedsim")]
    parts: dict[str, str] = {}
    for text in reversed(texts):
        for title, body in sections(text).items():
            parts[title] = f"{parts.get(title, '').rstrip()}\n{body}"
    for title in ("Parameters", "Attributes", "Returns", "Raises"):
        if title in parts:
            told += f"\n| {title.lower()} | |\n|---|---|\n" + entries(parts[title])
    own = [one for one in members() if one.owner is value and one.found.__module__.startswith("fedsim")]
    if own:
        told += "\n| member | what it is |\n|---|---|\n"
        for one in sorted(own, key=lambda each: each.found.__name__):
            shown = "" if one.is_property else called_with(one)
            told += f"| `.{one.found.__name__}{shown}` | {cell(first_sentence(one.text))} |\n"
    return told


def entries(text: str) -> str:
    """Return the entries of a section of a docstring as lines of a table."""
    found: list[tuple[str, list[str]]] = []
    for line in text.splitlines():
        if line and not line[0].isspace():
            head, _, rest = line.partition(" : ")
            found.append((head, [rest]))
        elif found:
            found[-1][1].append(line.strip())
    return "".join(f"| `{head}` | {cell(' '.join(filter(None, rest)))} |\n" for head, rest in found)


def about(value: object) -> str:
    """Return the first sentence about a value."""
    return first_sentence(inspect.cleandoc(value.__doc__ or ""))


def link(name: str, value: object) -> str:
    path = Path(inspect.getfile(inspect.unwrap(value)))
    return f"[`{name}`]({path.relative_to(Path(fedsim.__file__).parent).as_posix()})"


def arguments(value: object) -> str:
    """Return the arguments of a function or class as code; empty for others, and for what is not called."""
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
