"""Docstrings by audience: sections where users read them, one sentence everywhere else.

Users read those of exports, of contracts that they derive from, and of kinds of a scenario with their fields
(`tests/support/public_names.py` collects them). These list parameters, fields and errors, and say what is returned.
"""

import ast
import doctest
import inspect
import re

import pytest

from fedsim import errors
from tests.support.pages import ROOT
from tests.support.public_names import (
    SECTION,
    bases,
    exported,
    fields_of,
    listed,
    members,
    public,
    raised,
    sections,
    texts_of,
)

_OURS = {name for name in vars(errors) if name.endswith("Error")} | {
    "ValueError",
    "TypeError",
    "KeyError",
    "IndexError",
}
# A generator that the clock runs gives events to the clock, and a context gives nothing.
_NOTHING = re.compile(r"None$|Generator\[|Iterator\[None\]|NoReturn$")
_SAID = re.compile(r"\b([Rr]eturn|[Yy]ield)s?\b")
classes = [one for one in public() if inspect.isclass(one.found)]
functions = [*(one for one in public() if inspect.isfunction(one.found)), *members()]


def told(member):
    return [member.text] if member.owner is None else texts_of(member)


def returned(member):
    """What the signature says that is returned, in words."""
    found = inspect.signature(member.found).return_annotation
    return found if isinstance(found, str) else inspect.formatannotation(found)


def test_there_are_docstrings():
    assert len(classes) > 300
    assert len(functions) > 150
    assert not [one.home for one in (*classes, *functions) if not one.text]


def test_classes_list_what_their_objects_are_made_of():
    found = {}
    for one in classes:
        own = [base for base in one.found.__mro__ if base.__module__.startswith("fedsim")]
        known = set().union(*(listed(inspect.cleandoc(base.__doc__ or "")) for base in own))
        found[one.home] = [name for name in fields_of(one.found) if name not in known]
    assert not {home: missing for home, missing in found.items() if missing}


def test_functions_list_their_parameters():
    """A method with one parameter may speak of it in its sentence."""
    found = {}
    for one in functions:
        known = set().union(*map(listed, told(one)))
        in_sentence = one.is_property or (one.owner is not None and len(one.parameters) == 1 and not known)
        found[one.home] = [] if in_sentence else [name for name in one.parameters if name not in known]
    assert not {home: missing for home, missing in found.items() if missing}


def test_functions_say_what_they_return():
    wanted = [one for one in functions if not (one.is_property or _NOTHING.search(returned(one)))]
    assert len(wanted) > 100
    assert not [
        one.home
        for one in wanted
        if not any("Returns" in sections(text) or _SAID.search(sections(text)[""]) for text in told(one))
    ]


def test_functions_list_the_errors_that_they_raise():
    found = {one.home: raised(one) & _OURS for one in functions}
    assert sum(map(len, found.values())) > 10
    missing = {}
    for one in functions:
        known = "\n".join(sections(text).get("Raises", "") for text in told(one))
        missing[one.home] = {name for name in found[one.home] if name not in known}
    assert not {home: names for home, names in missing.items() if names}


def test_exports_are_shown_at_work():
    """`tests/test_doctests.py` runs the examples."""
    wanted = [one for one in public() if any(one.found is value for value in exported())]
    shown = {one.home: doctest.DocTestParser().get_examples(one.text) for one in wanted}
    assert not [home for home, examples in shown.items() if not examples]
    assert not [home for home, examples in shown.items() if any(doctest.SKIP in one.options for one in examples)]


def test_docstrings_list_no_parameter_that_is_none():
    """A parameter that has gone or was renamed is not told of."""
    found = {}
    for one in functions:
        has = inspect.signature(one.found).parameters
        found[one.home] = listed(one.text) - set(has) if "Parameters" in sections(one.text) else set()
    assert not {home: names for home, names in found.items() if names}


def docstrings():
    """Yield place and text of every docstring of a class or function, from files with a section."""
    for path in sorted((ROOT / "fedsim").rglob("*.py")):
        module = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        source = path.read_text()
        waiting = [(module, node) for node in (ast.parse(source).body if SECTION.search(source) else [])]
        for place, node in waiting:
            if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                waiting += [(f"{place}.{node.name}", inner) for inner in node.body]
                yield f"{place}.{node.name}", ast.get_docstring(node) or ""


def test_nothing_else_has_sections():
    known = {one.home for one in (*classes, *functions, *bases())}
    elsewhere = [place for place, text in docstrings() if SECTION.search(text) and place not in known]
    assert not elsewhere, f"{len(elsewhere)}, one sentence is allowed: {', '.join(elsewhere[:20])}"


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("One.\n\nParameters\n----------\na, b : two\n    more : no\n*rest : others\n", {"a", "b", "rest"}),
        ("One.\n\nAttributes\n----------\nx : one\n\nReturns\n-------\ny : other", {"x"}),
        ("One.\n\nArgs: a\n", set()),
    ],
)
def test_what_a_docstring_lists_is_read(text, names):
    assert listed(text) == names
