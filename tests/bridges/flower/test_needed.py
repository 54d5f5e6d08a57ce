"""Without Flower the bridge says what to install."""

import importlib
import sys

import pytest


def test_flower_is_missing(monkeypatch):
    for name in [name for name in sys.modules if name.startswith("fedsim.bridges.flower")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "flwr", None)
    with pytest.raises(ImportError, match=r"needs Flower: pip install 'fedsim-des\[flower\]'"):
        importlib.import_module("fedsim.bridges.flower")
