"""Rounds without a server: what a selector sees and hears where all clients are there and nothing is learned."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedsim.selectors import Reports, RoundView


def view_of(number: int, participations: NDArray[np.int64], **more: Any) -> RoundView:
    """Return the view of a round of clients with one sample each."""
    clients = participations.size
    unknown = np.full(clients, np.nan)
    view: dict[str, Any] = {
        "time_s": 0.0,
        "samples": np.ones(clients, dtype=np.int64),
        "total_samples": clients,
        "last_duration_s": unknown,
        "last_loss": unknown,
        "privacy_spent": np.zeros(clients),
        "privacy_budget": None,
        "features": np.zeros((clients, 0)),
        **more,
    }
    return RoundView(round=number, clients=clients, client=np.arange(clients), participations=participations, **view)


def reports_of(number: int, members: NDArray[np.int64], duration_s: NDArray[np.float64], **more: Any) -> Reports:
    """Return what a server reports of a cohort, which has delivered where nothing else is said."""
    reports: dict[str, Any] = {
        "time_s": 0.0,
        "delivered": np.ones(members.size, dtype=np.bool_),
        "loss": np.full(members.size, np.nan),
        **more,
    }
    return Reports(round=number, client=members, duration_s=duration_s, **reports)
