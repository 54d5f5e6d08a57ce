"""Round views, answers and reports for selectors that a test asks by hand; what a test does not name has a default."""

from functools import partial

import numpy as np

from fedsim.selectors import Answers, OracleView, Reports, RoundView

AT_REQUEST = (
    *("fading_gain", "full_power_dbm", "charge_j", "capacity_j", "charging_w", "participation_j"),
    "label_histogram",
)


def view_of(client=4, *, clients=None, features=None, oracle=None, **columns):
    """Return a view of the candidates: a number of clients, or their ids, with one sample each that never took part.

    `features` are rows of all clients; with columns that only an oracle sees the view is an `OracleView`.
    """
    asked = {name: columns.pop(name) for name in AT_REQUEST if name in columns}
    client = np.arange(client) if np.isscalar(client) else np.asarray(client, dtype=np.int64)
    n, clients = client.size, max(int(client.max(initial=-1)) + 1, 1) if clients is None else clients
    declared = np.zeros((clients, 0)) if features is None else np.asarray(features, dtype=float).reshape(clients, -1)
    number = columns.get("round", 1)
    known = {
        "round": number,
        "time_s": float(number),
        "clients": clients,
        "client": client,
        "samples": np.ones(n, dtype=np.int64),
        "total_samples": clients,
        "participations": np.zeros(n, dtype=np.int64),
        "last_duration_s": np.full(n, np.nan),
        "last_loss": np.full(n, np.nan),
        "privacy_spent": np.zeros(n),
        "privacy_budget": None,
        "features": declared[client],
        "at_request": {name: partial(np.array, value, dtype=float) for name, value in asked.items()},
    }
    known |= {name: np.asarray(value) if isinstance(value, list) else value for name, value in columns.items()}
    return (
        RoundView(**known) if oracle is None else OracleView(**{**known, "expected_duration_s": np.ones(n), **oracle})
    )


def answers_of(client, **answered):
    silence = np.full(len(client), np.nan)
    found = {"loss": silence, "compute_s": silence, "uplink_s": silence, **answered}
    columns = {name: np.asarray(value, dtype=float) for name, value in found.items()}
    return Answers(client=np.asarray(client, dtype=np.int64), **columns)


def reports_of(client, duration_s=1.0, *, delivered=True, number=1, time_s=None, loss=np.nan, **measured):
    client = np.atleast_1d(np.asarray(client, dtype=np.int64))

    def column(value, dtype=float):
        return np.broadcast_to(np.asarray(value, dtype=dtype), client.shape).copy()

    return Reports(
        round=number,
        time_s=float(number) if time_s is None else time_s,
        client=client,
        delivered=column(delivered, bool),
        duration_s=column(duration_s),
        loss=column(loss),
        measured={name: np.asarray(value) for name, value in measured.items()},
    )


def measured_reports_of(client, delivered=True, loss_rms=1.0, gain=1.0, duration_s=1.0, number=1):
    """Return reports with the root mean square of losses and the gain of accuracy of those that have delivered."""
    shape = np.shape(client)

    def told(value):
        return np.where(delivered, np.broadcast_to(value, shape).astype(float), np.nan)

    return reports_of(
        client,
        duration_s,
        delivered=delivered,
        number=number,
        loss=told(loss_rms),
        loss_rms=told(loss_rms),
        accuracy_gain=told(gain),
    )


def rng(seed=0):
    return np.random.default_rng(seed)


def check_shares(draw, chance, times=1_500, errors=5):
    """Draw positions many times, and compare how often each came with its probability, to some standard errors."""
    chance = np.asarray(chance, dtype=float)
    counts = np.bincount(np.concatenate([np.atleast_1d(draw()) for _ in range(times)]), minlength=chance.size)
    assert np.all(np.abs(counts / times - chance) <= errors * np.sqrt(chance * (1 - chance) / times) + 1e-12), counts


def taught(selector, clients=10, **reported):
    selector.select(view_of(clients), rng())
    count = max(np.size(value) for value in reported.values())
    selector.observe(measured_reports_of(np.arange(count), **reported))
    return selector


def play(selector, rounds, clients, duration_s, seed=0):
    participations, cohorts = np.zeros(clients, dtype=np.int64), []
    for number in range(1, rounds + 1):
        spent = 20.0 * (1 - np.exp(-0.04 * participations))
        view = view_of(
            clients, round=number, participations=participations.copy(), privacy_spent=spent, privacy_budget=20.0
        )
        chosen = selector.select(view, np.random.default_rng([seed, number])).client
        cohorts.append(chosen)
        participations[chosen] += 1
        selector.observe(reports_of(chosen, duration_s[chosen], number=number))
    return cohorts, participations


def replace_one_by_one(selector, clients, concurrency, versions, **told):
    """Yield the first cohort of an asynchronous server, and then the client that replaces the one in flight longest.

    Each delivery makes a version of the model and is reported before the next client is asked for.
    """
    participations, working, wanted = np.zeros(clients, dtype=np.int64), [], concurrency
    for number in range(1, versions + 1):
        free = np.setdiff1d(np.arange(clients), working)
        view = view_of(free, clients=clients, round=number, wanted=wanted, participations=participations[free])
        chosen = selector.select(view, rng(number)).client
        participations[chosen] += 1
        working += chosen.tolist()
        yield chosen
        done, wanted = working.pop(0), 1
        selector.observe(measured_reports_of([done], number=number, **{name: at[done] for name, at in told.items()}))
