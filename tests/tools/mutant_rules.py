"""Rules for mutants that no test can kill: the changed program gives the same result for all inputs.

The lines that differ are compared without what counts for nothing: `strict` of `zip` only raises where lengths differ,
which the lines before it exclude; `cast` ignores its type; and a message with ``XX`` around its words names the same
field, value and what is allowed.
"""

import ast
import re
from difflib import unified_diff
from functools import cache
from pathlib import Path

Lines = tuple[list[str], list[str]]
RULES = {
    "strict of zip": (r"\bzip\(", r", strict=\w+", ""),
    "type of cast": (r"\bcast\(", r"""(?<=\bcast\()('[^']*'|"[^"]*"|[^,'"()]+), """, "type, "),
    "frame around the words of an error": (r"Error\(", r"(?<=['\"])XX|XX(?=['\"])", ""),
}
"""What lines must have, what of them counts for nothing, and what stands for that."""


def equivalent(was: list[str], is_: list[str]) -> str | None:
    """Return the name of the rule by which changed lines give the same results; None if no rule says so."""
    for name, (where, nothing, instead) in RULES.items():
        before, after = ([re.sub(nothing, instead, line) for line in lines] for lines in (was, is_))
        if before == after and all(re.search(where, line) for line in [*was, *is_]):
            return name
    return None


def changed_lines(folder: Path, mutant: str) -> Lines:
    texts = [ast.unparse(tree).splitlines() for tree in changed_function(folder, mutant)]
    lines = [text for text in unified_diff(*texts, n=0) if re.match(r"[-+](?![-+])", text)]
    return tuple([line[1:].strip() for line in lines if line[0] == sign] for sign in "-+")


def changed_function(folder: Path, mutant: str) -> tuple[ast.FunctionDef, ast.FunctionDef]:
    """Return a function before and after the change of a mutant, without their names."""
    module, _, name = mutant.rpartition(".")
    path = folder / module.replace(".", "/")
    functions = _functions(path / "__init__.py" if path.is_dir() else path.with_suffix(".py"))
    return functions[f"{name.rpartition('__mutmut_')[0]}__mutmut_orig"], functions[name]


@cache
def _functions(path: Path) -> dict[str, ast.FunctionDef]:
    """Return the functions of a module with mutants; all have the same name in their trees."""
    found = {}
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef) and "__mutmut_" in node.name:
            found[node.name], node.name = node, ""
    return found
