"""Each public function, class, method and property has a docstring with the sections that apply.

Parameters named in a signature are listed; what is returned is said, in a section or in a first sentence with the word
"return"; errors that its own lines raise are listed. A method may leave this to the base class or the contract that it
fulfils, since what these say holds for it.
"""

import doctest
import inspect
import re

import pytest

from fedsim import errors
from tests.support.public_names import fields_of, listed, members, public, raised, sections, texts_of

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
functions = [*(one for one in public() if not inspect.isclass(one.found)), *members()]


def told(member):
    return [member.text] if member.owner is None else texts_of(member)


def returned(member):
    """What the signature says that is returned, in words."""
    found = inspect.signature(member.found).return_annotation
    return found if isinstance(found, str) else inspect.formatannotation(found)


def test_there_are_docstrings():
    assert len(classes) > 200
    assert len(functions) > 600
    assert not [one.place for one in (*classes, *functions) if not one.text]


def test_classes_list_what_their_objects_are_made_of():
    found = {}
    for one in classes:
        own = [base for base in one.found.__mro__ if base.__module__.startswith("fedsim")]
        known = set().union(*(listed(inspect.cleandoc(base.__doc__ or "")) for base in own))
        found[one.place] = [name for name in fields_of(one.found) if name not in known]
    assert not {place: missing for place, missing in found.items() if missing}


def test_functions_list_their_parameters():
    found = {}
    for one in functions:
        known = set().union(*map(listed, told(one)))
        found[one.home] = [] if one.is_property else [name for name in one.parameters if name not in known]
    assert not {home: missing for home, missing in found.items() if missing}


def test_functions_say_what_they_return():
    wanted = [one for one in functions if not (one.is_property or _NOTHING.search(returned(one)))]
    assert len(wanted) > 300
    assert not [
        one.home
        for one in wanted
        if not any("Returns" in sections(text) or _SAID.search(sections(text)[""]) for text in told(one))
    ]


def test_functions_list_the_errors_that_they_raise():
    found = {one.home: raised(one) & _OURS for one in functions}
    assert sum(map(len, found.values())) > 40
    missing = {}
    for one in functions:
        known = "\n".join(sections(text).get("Raises", "") for text in told(one))
        missing[one.home] = {name for name in found[one.home] if name not in known}
    assert not {home: names for home, names in missing.items() if names}


def test_classes_and_functions_are_shown_at_work():
    """`tests/test_doctests.py` runs the examples."""
    found = {one.place: doctest.DocTestParser().get_examples(one.text) for one in public()}
    assert sum(map(len, found.values())) > 500
    assert not [place for place, examples in found.items() if not examples]
    assert not [place for place, examples in found.items() if any(doctest.SKIP in one.options for one in examples)]


def test_docstrings_list_no_parameter_that_is_none():
    """A parameter that has gone or was renamed is not told of."""
    found = {}
    for one in functions:
        has = inspect.signature(one.found).parameters
        found[one.home] = listed(one.text) - set(has) if "Parameters" in sections(one.text) else set()
    assert not {home: names for home, names in found.items() if names}


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
