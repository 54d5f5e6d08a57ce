"""The examples in docstrings hold."""

import doctest
import importlib

import pytest

from tests.support.pages import ROOT

FILES = [path for path in sorted((ROOT / "fedsim").rglob("*.py")) if ">>>" in path.read_text()]
MODULES = [".".join(path.relative_to(ROOT).with_suffix("").parts) for path in FILES]


@pytest.mark.parametrize("name", MODULES)
def test_docstrings(name, beside_scenarios):
    assert doctest.testmod(importlib.import_module(name)).failed == 0
