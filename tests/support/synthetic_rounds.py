"""Round views and reports for selectors that are asked by hand."""

import numpy as np

from fedsim.selectors import Reports, RoundView


def view_of(number=1, clients=10, client=None, features=None, **columns):
    """Return a view; `features` are those of the whole crowd, of which candidates' rows are taken."""
    candidates = np.arange(clients) if client is None else np.asarray(client, dtype=np.int64)
    declared = np.zeros((clients, 0)) if features is None else np.asarray(features, dtype=float).reshape(clients, -1)
    known = {
        "time_s": float(number),
        "samples": np.ones(candidates.size, dtype=np.int64),
        "total_samples": clients,
        "participations": np.zeros(candidates.size, dtype=np.int64),
        "last_duration_s": np.full(candidates.size, np.nan),
        "last_loss": np.full(candidates.size, np.nan),
        "privacy_spent": np.zeros(candidates.size),
        "privacy_budget": None,
    }
    return RoundView(
        round=number, clients=clients, client=candidates, features=declared[candidates], **{**known, **columns}
    )


def reports_of(client, delivered=True, loss_rms=1.0, gain=1.0, duration_s=1.0, number=1):
    """Return what became of a cohort; scalars count for all of it."""
    client = np.asarray(client, dtype=np.int64)
    arrived = np.broadcast_to(delivered, client.shape).astype(bool)

    def told(value):
        return np.where(arrived, np.broadcast_to(value, client.shape).astype(float), np.nan)

    return Reports(
        round=number,
        time_s=float(number),
        client=client,
        delivered=arrived,
        duration_s=np.broadcast_to(duration_s, client.shape).astype(float),
        loss=told(loss_rms),
        measured={"loss_rms": told(loss_rms), "accuracy_gain": told(gain)},
    )


def rng(seed=0):
    return np.random.default_rng(seed)


def replace_one_by_one(selector, clients, concurrency, versions, features=None, **told):
    """Yield the first cohort of an asynchronous server, and then whom it sends for whoever has worked longest.

    Each delivery makes a version of the model and is reported before the next client is asked for.
    """
    participations, working, wanted = np.zeros(clients, dtype=np.int64), [], concurrency
    for number in range(1, versions + 1):
        free = np.setdiff1d(np.arange(clients), working)
        view = view_of(
            number, clients, client=free, features=features, wanted=wanted, participations=participations[free]
        )
        chosen = selector.select(view, rng(number)).client
        participations[chosen] += 1
        working += chosen.tolist()
        yield chosen
        done, wanted = working.pop(0), 1
        selector.observe(reports_of([done], number=number, **{name: at[done] for name, at in told.items()}))
