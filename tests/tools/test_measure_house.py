"""Figures of a house of three files, counted by hand."""

import pytest

from tests.tools.measure_house import code_lines, docstring_lines, measure

TOP = '''"""One line."""

from fedsim import below  # a comment


class Top:
    """Two
    lines."""

    def __init__(self, a, b, *, c):
        self.all = (
            a,
            b, c
        )
'''
BELOW = '''LIMIT = 3
"""Most of them."""


def some(given):
    # nothing is said here
    return [one for one in given if one is not None]
'''


@pytest.fixture
def house(tmp_path):
    files = {
        "fedsim/__init__.py": "",
        "fedsim/top.py": TOP,
        "fedsim/below.py": BELOW,
        "fedsim/rounds/__init__.py": "from fedsim.top import Top\n",
        "fedsim/rounds/one.py": "def ask(a, b):\n    return a is None or b is not None\n",
        "fedsim/rounds/audit/two.py": "def ask(a):\n    return a is None\n",
        "tests/test_top.py": "def test_it():\n    assert True\n\n\ndef test_more():\n    assert True\n",
        "README.md": "# One\n\nTwo\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.mark.slow
def test_figures_are_those_counted_by_hand(house):
    found = measure(house, with_cases=True, with_seconds=False)
    assert found == {
        "lines": 14 + 7 + 1 + 2 + 2,
        "code": 7 + 3 + 1 + 2 + 2,
        "docstrings": 3 + 1,
        "files": 6,
        "classes": 1,
        "longest file": 14,
        "floors": 3,  # rounds, top, below
        "files of a round": 0,  # there is no script
        "calls of a round": 0,
        "checks for None": 2,
        "most parameters": 3,
        "pages": 3,
        "test lines": 6,
        "default cases": 2,
        "all cases": 2,
    }


def test_lines_of_code_and_of_docstrings_share_no_line():
    import ast

    assert docstring_lines(ast.parse(TOP)) == {1, 7, 8}
    assert code_lines(TOP) - docstring_lines(ast.parse(TOP)) == {3, 6, 10, 11, 12, 13, 14}
