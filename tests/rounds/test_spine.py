"""The spine of a round names no feature: what batteries, losses and the like do stands in files of their own."""

import re

from tests.support.pages import ROOT

ROUNDS = ROOT / "fedsim" / "rounds"
FEATURES = re.compile(
    "battery|batteries|outage|hazard|secure|width|allocation|epsilon|account|audit|probe", re.IGNORECASE
)
ROOMS = {"effects", "hierarchy", "secure"}
# Files about one feature or several, which the list of effects is to take over; the aim is none.
ABOUT_FEATURES = {
    "workload.py",
    *(f"server/{name}.py" for name in ("charges", "context", "declared", "loads", "oracle", "questions")),
}


def test_no_other_file_names_a_feature():
    found = {
        path.relative_to(ROUNDS)
        for path in ROUNDS.rglob("*.py")
        if not ROOMS & set(path.relative_to(ROUNDS).parts) and FEATURES.search(path.read_text())
    }
    assert {str(path) for path in found} == ABOUT_FEATURES
