"""Rules for mutants that no test can kill: the changed program gives the same result for all inputs.

A mutant is compared with its function as syntax trees. A rule looks at the places where the two differ, and at the
calls around them: `strict` of `zip` only raises where lengths differ, which the lines before it exclude; `cast` ignores
its type; and a message with ``XX`` around its words names the same field, value and what is allowed.
"""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

Pair = tuple[ast.AST, ast.AST]


def equivalent(old: ast.AST, new: ast.AST) -> str | None:
    """Return the name of the rule by which a changed function gives the same results; None if no rule says so."""
    found = {_rule([*reversed(path)]) for path in differences(old, new)}
    return found.pop() if len(found) == 1 else None


def differences(old: ast.AST, new: ast.AST) -> Iterator[list[Pair]]:
    """Yield the pairs of nodes from the top down to each innermost place where two trees differ."""
    if ast.dump(old) == ast.dump(new):
        return
    inner: list[list[Pair]] = []
    if type(old) is type(new):
        before, after = list(ast.iter_child_nodes(old)), list(ast.iter_child_nodes(new))
        if len(before) == len(after):
            inner = [path for one, other in zip(before, after, strict=True) for path in differences(one, other)]
    yield from ([(old, new), *path] for path in inner or [[]])


def _rule(path: list[Pair]) -> str | None:
    """Return the rule for one difference, given from the innermost pair of nodes outwards."""
    for old, new in path:
        if isinstance(old, ast.Call) and isinstance(new, ast.Call):
            if _name(old) == "zip" and _without_strict(old) == _without_strict(new):
                return "strict of zip"
            if _name(old) == "cast" and [*map(ast.dump, old.args[1:])] == [*map(ast.dump, new.args[1:])]:
                return "type of cast"
            if _name(old).endswith("Error") and _framed(*path[0]):
                return "frame around the words of an error"
    return None


def _name(call: ast.Call) -> str:
    return call.func.id if isinstance(call.func, ast.Name) else getattr(call.func, "attr", "")


def _without_strict(call: ast.Call) -> list[str]:
    return [*map(ast.dump, call.args), *(ast.dump(word) for word in call.keywords if word.arg != "strict")]


def _framed(old: ast.AST, new: ast.AST) -> bool:
    """Return whether a text only has ``XX`` before and after it: it still names all that it named."""
    return (
        isinstance(old, ast.Constant)
        and isinstance(new, ast.Constant)
        and isinstance(old.value, str)
        and new.value == f"XX{old.value}XX"
    )


def changed_function(folder: Path, mutant: str) -> Pair:
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
