"""The examples in docstrings hold."""

import doctest
import importlib

import pytest

from tests.support.families import by_default
from tests.support.pages import ROOT

FILES = [path for path in sorted((ROOT / "fedsim").rglob("*.py")) if ">>>" in path.read_text()]
MODULES = [".".join(path.relative_to(ROOT).with_suffix("").parts) for path in FILES]
# Their examples run studies.
LONG = ["fedsim.studies.result", "fedsim.studies.sweeping"]


@pytest.mark.parametrize("name", by_default(MODULES, [name for name in MODULES if name not in LONG]), ids=MODULES)
def test_docstrings(name, beside_scenarios):
    assert doctest.testmod(importlib.import_module(name)).failed == 0
