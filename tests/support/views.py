"""Views, answers and reports made by hand, with what a test does not care about filled in."""

import numpy as np

from fedsim.selectors import Answers, OracleView, Reports, RoundView


def view_of(client=4, *, oracle=None, **columns):
    """Return a view of so many candidates, or of these ids; columns are given as lists."""
    client = np.arange(client) if np.isscalar(client) else np.asarray(client, dtype=np.int64)
    n = client.size
    known = {
        "round": 1,
        "time_s": 0.0,
        "clients": max(int(client.max(initial=-1)) + 1, 1),
        "client": client,
        "samples": np.ones(n, dtype=np.int64),
        "total_samples": n,
        "participations": np.zeros(n, dtype=np.int64),
        "last_duration_s": np.full(n, np.nan),
        "last_loss": np.full(n, np.nan),
        "privacy_spent": np.zeros(n),
        "privacy_budget": None,
        "features": np.zeros((n, 0)),
    }
    known |= {name: np.asarray(value) if isinstance(value, list) else value for name, value in columns.items()}
    return RoundView(**known) if oracle is None else OracleView(**known, expected_duration_s=np.ones(n), **oracle)


def answers_of(client, *, loss=None, compute_s=None, uplink_s=None):
    """Return answers; what was not asked for is NaN."""
    silence = np.full(len(client), np.nan)
    return Answers(
        client=np.asarray(client, dtype=np.int64),
        loss=silence if loss is None else np.asarray(loss, dtype=float),
        compute_s=silence if compute_s is None else np.asarray(compute_s, dtype=float),
        uplink_s=silence if uplink_s is None else np.asarray(uplink_s, dtype=float),
    )


def reports_of(client, *, round_=1, time_s=1.0, delivered=None, duration_s=None, loss=None, **measured):
    """Return reports in which everybody has delivered after a second unless it is said otherwise."""
    n = len(client)
    return Reports(
        round=round_,
        time_s=time_s,
        client=np.asarray(client, dtype=np.int64),
        delivered=np.ones(n, dtype=bool) if delivered is None else np.asarray(delivered, dtype=bool),
        duration_s=np.ones(n) if duration_s is None else np.asarray(duration_s, dtype=float),
        loss=np.full(n, np.nan) if loss is None else np.asarray(loss, dtype=float),
        measured={name: np.asarray(value) for name, value in measured.items()},
    )


def rng(seed=0):
    """Return a generator."""
    return np.random.default_rng(seed)
