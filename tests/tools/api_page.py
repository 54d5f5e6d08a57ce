"""Prints the page of all public names, made of their signatures and docstrings; ``--write`` puts it into fedsim/API.md.

python tests/tools/api_page.py --write
"""

import ast
import importlib
import inspect
import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

import fedsim  # noqa: E402 - found beside this script
from fedsim.registry import Registry  # noqa: E402
from tests.support.public_names import Member, is_protocol, members, rooms, sections  # noqa: E402

PAGE = ROOT / "fedsim" / "API.md"
IN_FULL = ("fedsim", "fedsim.testing")
HEAD = """# Public names

<!-- written by tests/tools/api_page.py -->

Written from signatures and docstrings by `python tests/tools/api_page.py --write`. What stands here follows the
versions of fedsim (`fedsim/README.md`, Versions); what does not may change at any time. `help(fedsim.simulate)` prints
a whole docstring, and each name leads to its file. Kinds of parts with their options: `fedsim list`. Units stand in
names: `_s`, `_bits`, `_bps`, `_hz`, `_m`, `_db`, `_dbm`, `_j`, `_w`. Shapes are those of NumPy's arrays; K is the
number of clients.
"""
LONGEST_DEFAULT = 24


def page() -> str:
    """Return the page."""
    return HEAD + "".join(section(room) for room in rooms())


def section(room: str) -> str:
    """Return what a room exports."""
    module = importlib.import_module(room)
    lines = [f"\n## {room}\n\n{first_sentence(inspect.getdoc(module) or '')}\n"]
    if room in IN_FULL:
        lines += [in_full(room, name, getattr(module, name)) for name in sorted(module.__all__, key=str.lower)]
    else:
        lines.append("\n| name | what it is |\n|---|---|\n")
        lines += [row(room, name, getattr(module, name)) for name in sorted(module.__all__, key=str.lower)]
    return "".join(lines)


def row(room: str, name: str, value: object) -> str:
    """Return a line of a table: name with its arguments, and the first sentence about it."""
    return f"| {link(room, name, value)}{arguments(value)} | {cell(about(room, name, value))} |\n"


def in_full(room: str, name: str, value: object) -> str:
    """Return the paragraph about a name: what it is called with, what that means, and its methods."""
    told = f"\n### {name}\n\n{link(room, name, value)}{arguments(value)}\n\n{about(room, name, value)}\n"
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


def about(room: str, name: str, value: object) -> str:
    """Return the first sentence about a value."""
    if inspect.isclass(value) or inspect.isfunction(value):
        return first_sentence(inspect.cleandoc(value.__doc__ or ""))
    if isinstance(value, Registry):
        return f"Catalogue of the kinds of {value.noun}; entry-point group `{value.group}`."
    return first_sentence(written_below(room, name)) or "Type or constant."


def written_below(room: str, name: str) -> str:
    """Return the text that stands below an assignment in its module; empty for none."""
    path = place(room, name)
    body = ast.parse(path.read_text()).body
    for node, after in zip(body, [*body[1:], None], strict=True):
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        if any(isinstance(target, ast.Name) and target.id == name for target in targets):
            text = getattr(getattr(after, "value", None), "value", "")
            return inspect.cleandoc(text) if isinstance(text, str) else ""
    return ""


def place(room: str, name: str) -> Path:
    """Return the file from which a room has a name."""
    home = Path(importlib.import_module(room).__file__)
    for node in ast.walk(ast.parse(home.read_text())):
        ours = isinstance(node, ast.ImportFrom) and (node.module or "").startswith("fedsim")
        if ours and any(alias.name == name for alias in node.names):
            found = Path(fedsim.__file__).parents[1].joinpath(*node.module.split("."))
            return place(node.module, name) if found.is_dir() else found.with_suffix(".py")
    return home


def link(room: str, name: str, value: object) -> str:
    """Return a name that leads to its file."""
    code = inspect.isclass(value) or inspect.isfunction(value)
    path = (
        Path(inspect.getfile(inspect.unwrap(value)))
        if code and value.__module__.startswith("fedsim")
        else place(room, name)
    )
    return f"[`{name}`]({path.relative_to(Path(fedsim.__file__).parent).as_posix()})"


def arguments(value: object) -> str:
    """Return the arguments of a function or class as code; empty for others, and for what is not called."""
    if not (inspect.isclass(value) or inspect.isfunction(value)) or not value.__module__.startswith("fedsim"):
        return ""
    if inspect.isclass(value) and is_protocol(value):
        return ""
    shown = called_with(Member("", value))
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
    """Return a text as the cell of a table."""
    return text.replace("``", "`").replace("|", r"\|")


if __name__ == "__main__":
    if "--write" in sys.argv:
        PAGE.write_text(page())
    else:
        sys.stdout.write(page())
