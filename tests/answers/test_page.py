"""The page of the contracts names every contract and every member."""

import importlib
import pkgutil
from importlib.util import find_spec

import fedsim
from fedsim.answers import Contract
from tests.support.pages import ROOT

NEEDS_FLOWER = "fedsim.bridges.flower"


def contracts():
    """Yield every contract that a module declares."""
    for module in pkgutil.walk_packages(fedsim.__path__, "fedsim."):
        if module.name.startswith(NEEDS_FLOWER) and find_spec("flwr") is None:
            continue
        if not module.name.endswith("__main__"):
            found = vars(importlib.import_module(module.name)).values()
            yield from (value for value in found if isinstance(value, Contract))


def test_the_page_names_every_contract_and_member():
    rows = {}
    for line in (ROOT / "fedsim/answers/README.md").read_text().splitlines():
        if line.startswith("| ") and not line.startswith("| part"):
            part, told = line.strip("| ").split(" | ", 1)
            rows[part] = told
    assert len(rows) >= 38
    missing = {
        f"{contract.noun}.{member}"
        for contract in contracts()
        for member in contract.members
        if f"`{member}`" not in rows.get(contract.noun, "")
    }
    assert not missing
