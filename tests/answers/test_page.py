"""The page of the contracts names every contract and every member."""

from tests.support.pages import ROOT
from tests.support.public_names import contracts


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
