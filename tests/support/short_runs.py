"""Scenarios whose runs take a moment, for tests of what surrounds a run."""

from typing import Any, Final

from fedsim import Scenario, simulate

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


def timed(
    *, clients: int = 6, bits: float | None = None, samples: int | None = None, cohort: int | None = None, **tables: Any
) -> Scenario:
    """Return a scenario about times alone, with the audit: one round in which clients only send.

    Without the size of a cohort all clients take part; other tables replace the ones here.
    """
    sizes = {"model_bits": bits, "samples_per_client": samples}
    usual = {
        "name": "short",
        "crowd": {"clients": clients},
        "learning": {"kind": "none", **{name: size for name, size in sizes.items() if size is not None}},
        "network": "pause-two-speed",
        "devices": {"compute": "zero"},
        "rounds": {"count": 1},
        "selector": "all" if cohort is None else {"kind": "uniform", "cohort": cohort},
        "results": {"audit": True},
    }
    return Scenario(**{**usual, **tables})


def of_learning(learning: Any, *, clients: int = 4, rounds: int = 1, cohort: int | None = 2, **tables: Any) -> Scenario:
    return Scenario(
        name="short",
        crowd={"clients": clients},
        learning=learning,
        network="pause-two-speed",
        rounds={"count": rounds},
        selector="all" if cohort is None else {"kind": "uniform", "cohort": cohort},
        **tables,
    )


_LAW: Final = {"kind": "shifted-exponential", "shift_s": 0.01, "scale_s": 0.1}
DIGITS: Final = Scenario(
    name="short",
    crowd={"clients": 6},
    learning={
        "data": {"kind": "digits", "train_limit": 240},
        "model": {"kind": "mlp", "hidden": []},
        "local": {"learning_rate": 0.05},
    },
    network={"kind": "latency", "downlink": _LAW, "uplink": _LAW},
    rounds={"count": 3},
    selector={"kind": "uniform", "cohort": 3},
)
"""Three rounds of six clients that learn from forty digits each over links of random latency."""

PRIVATE: Final = Scenario(
    name="private",
    crowd={"clients": 12},
    learning={"model": {"kind": "mlp", "hidden": []}, "local": {"epochs": 1, "batch_size": 16}},
    network={"kind": "pause-two-speed"},
    rounds={"count": 3},
    selector={"kind": "uniform", "cohort": 4},
    privacy={
        "budget": {"kind": "geometric", "epsilon": 200.0, "eta": 0.04},
        "mechanism": {"kind": "laplace-l1", "clip": 1.0},
    },
)
"""Three rounds of twelve clients that learn from all digits, with a budget of 200 epsilon."""


def losses(scenario: Scenario) -> list[float]:
    return simulate(scenario).evaluations.column("loss").to_pylist()
