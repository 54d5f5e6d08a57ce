"""Scenarios whose runs take a moment, for tests of what surrounds a run."""

from typing import Any, Final

from fedsim import Scenario

LEARNING: Final = """
name = "short"
crowd = { clients = 4 }
rounds = { count = 3 }
network = "pause-two-speed"
selector = { kind = "uniform", cohort = 2 }
[learning]
data = { kind = "digits", train_limit = 80 }
model = { kind = "mlp", hidden = [] }
"""
"""Three rounds of four clients that learn from twenty digits each."""

TIMING: Final = Scenario(
    name="short",
    crowd={"clients": 6},
    learning="none",
    network="pause-two-speed",
    devices={"compute": "zero"},
    rounds={"count": 8},
    selector={"kind": "uniform", "cohort": 3},
)
"""Eight rounds about times alone."""


def of_learning(learning: Any, *, clients: int = 4, rounds: int = 1, cohort: int | None = 2, **tables: Any) -> Scenario:
    """Return a short scenario of this learning; without the size of a cohort all clients take part."""
    return Scenario(
        name="short",
        crowd={"clients": clients},
        learning=learning,
        network="pause-two-speed",
        rounds={"count": rounds},
        selector="all" if cohort is None else {"kind": "uniform", "cohort": cohort},
        **tables,
    )
