"""The spine of a round names no feature: what batteries, losses and the like do stands in files of their own."""

import re

from tests.support.pages import ROOT

ROUNDS = ROOT / "fedsim" / "rounds"
FEATURES = re.compile(
    "battery|batteries|outage|hazard|secure|width|allocation|epsilon|account|audit|probe", re.IGNORECASE
)
ROOMS = {"effects", "hierarchy", "secure"}


def test_no_other_file_names_a_feature():
    found = {
        path.relative_to(ROUNDS)
        for path in ROUNDS.rglob("*.py")
        if not ROOMS & set(path.relative_to(ROUNDS).parts) and FEATURES.search(path.read_text())
    }
    assert not found
