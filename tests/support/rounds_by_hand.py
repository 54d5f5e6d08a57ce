"""Views and reports of made-up rounds, for tests that call select and observe by hand."""

import numpy as np

from fedsim.selectors import Reports, RoundView


def view_of(number=1, clients=30, client=None, **changes):
    client = np.arange(clients) if client is None else np.asarray(client)
    columns = {
        "round": number,
        "time_s": 0.0,
        "clients": clients,
        "client": client,
        "samples": np.full(client.size, 10),
        "total_samples": 10 * clients,
        "participations": np.zeros(client.size, dtype=np.int64),
        "last_duration_s": np.full(client.size, np.nan),
        "last_loss": np.full(client.size, np.nan),
        "privacy_spent": np.zeros(client.size),
        "privacy_budget": 20.0,
        "features": np.zeros((client.size, 0)),
    }
    return RoundView(**{**columns, **changes})


def reports_of(client, duration_s, delivered=True, number=1):
    client = np.atleast_1d(client)
    return Reports(
        round=number,
        time_s=1.0,
        client=client,
        delivered=np.full(client.size, delivered),
        duration_s=np.broadcast_to(np.asarray(duration_s, dtype=float), client.shape).copy(),
        loss=np.full(client.size, np.nan),
    )


def play(selector, rounds, clients, duration_s, seed=0):
    """Play rounds with a constant duration per client; return cohorts and participations."""
    participations, cohorts = np.zeros(clients, dtype=np.int64), []
    for number in range(1, rounds + 1):
        spent = 20.0 * (1 - np.exp(-0.04 * participations))
        view = view_of(number, clients, participations=participations.copy(), privacy_spent=spent)
        chosen = selector.select(view, np.random.default_rng([seed, number])).client
        cohorts.append(chosen)
        participations[chosen] += 1
        selector.observe(reports_of(chosen, duration_s[chosen], number=number))
    return cohorts, participations
