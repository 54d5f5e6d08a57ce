"""Rules for mutants that nothing can kill: what they take in, and what is next to it and stays out."""

import pytest

from tests.tools.mutant_rules import changed_lines, equivalent


@pytest.mark.parametrize(
    ("old", "new", "rule"),
    [
        ("zip(a, b, strict=True)", "zip(a, b, strict=False)", "strict of zip"),
        ("zip(a, b, strict=True)", "zip(a, b)", "strict of zip"),
        ("zip(a, b, strict=True)", "zip(a, None, strict=True)", None),
        ("zip(a, b, strict=True)", "zip(a, strict=True)", None),
        ("f(a, strict=True)", "f(a, strict=False)", None),
        ("cast('int', a)", "cast(None, a)", "type of cast"),
        ("cast('int', a)", "cast('int', None)", None),
        ("cast('int', a)", "cast(a)", None),
        ("ValueError('a: it is 1')", "ValueError('XXa: it is 1XX')", "frame around the words of an error"),
        ("ValueError('a: it is 1')", "ValueError('A: IT IS 1')", None),
        ("ValueError('a: it is 1')", "ValueError(None)", None),
        ("f('a')", "f('XXaXX')", None),
    ],
)
def test_a_rule(old, new, rule):
    assert equivalent([old], [new]) == rule


def test_a_change_of_one_kind_hides_none_of_another():
    assert equivalent(["zip(a, b, strict=True), c"], ["zip(a, b, strict=False), d"]) is None


def test_mutants_are_read_from_their_module(tmp_path):
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "two.py").write_text(
        "def x_f__mutmut_orig(a):\n    return cast('int', a)\n"
        "def x_f__mutmut_1(a):\n    return cast(None, a)\n"
        "def x_f__mutmut_2(a):\n    return cast('int', None)\n"
    )
    lines = changed_lines(tmp_path, "one.two.x_f__mutmut_1")
    assert lines == (["return cast('int', a)"], ["return cast(None, a)"])
    assert equivalent(*lines) == "type of cast"
    assert equivalent(*changed_lines(tmp_path, "one.two.x_f__mutmut_2")) is None
