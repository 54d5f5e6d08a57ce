"""The typed example uses every public name of `fedsim`, is checked by mypy, and does what it says."""

import ast
import tomllib

import pytest

import fedsim
from tests.support.pages import ROOT
from tests.typing.example import main

EXAMPLE = ROOT / "tests" / "typing" / "example.py"


def test_it_uses_every_name_of_fedsim():
    tree = ast.parse(EXAMPLE.read_text())
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    assert set(fedsim.__all__) <= used


def test_mypy_checks_it_in_strict_mode():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["mypy"]
    assert settings["strict"]
    assert str(EXAMPLE.relative_to(ROOT)) in settings["files"]
    assert (ROOT / "fedsim" / "py.typed").is_file()


@pytest.mark.slow
def test_it_runs(tmp_path):
    history = main(tmp_path)
    # Two rounds of three clients, who are those that took part least: six different ones.
    assert len(set(history.participations["client"].to_pylist())) == 6
    assert (tmp_path / "both.png").stat().st_size > 0
