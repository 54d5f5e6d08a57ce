"""What a user should know of a run, read from its tables."""

from typing import Final

import numpy as np
import pyarrow as pa

from fedsim.clock import TIE_ULPS
from fedsim.history.tables import Tables
from fedsim.inputs.arrow import numbers_of
from fedsim.units import counted, in_seconds

LEAST_DELIVERED: Final = 0.05
"""Share of delivered participations below which nearly nothing is delivered."""

FASTEST_BPS: Final = 1e11
SLOWEST_BPS: Final = 1.0
"""Rates beyond which a transfer is absurd."""

_NAMED: Final = 5
"""Clients that a note names."""

NEARLY_SPENT: Final = 0.99
"""Share of a privacy budget from which on it counts as spent."""


def notes_of(tables: Tables, rates: "Rates | None" = None, budget: float | None = None) -> list[str]:
    """Return sentences on what went wrong without ending the run; none if nothing did."""
    found = [
        *(_not_finite(tables), _not_delivered(tables), _no_model(tables)),
        *(rates.note() if rates else "", _noisy(tables), _spent(tables, budget)),
    ]
    return [note for note in found if note]


def _not_finite(tables: Tables) -> str:
    loss = tables.column("evaluations", "loss").astype(np.float64)
    wrong = np.flatnonzero(tables.known("evaluations", "loss") & ~np.isfinite(loss))
    if not wrong.size:
        return ""
    first = int(wrong[0])
    number, time_s = (tables.column("evaluations", name)[first] for name in ("round", "time_s"))
    again = "" if wrong.size == loss.size - first else "; later ones are finite again"
    before = int(tables.column("evaluations", "round")[first - 1]) if first else 0
    return (
        f"the model is no number any more: its loss is {loss[first]} after round {number}, at {time_s:.6g} s, and "
        f"{wrong.size} of {counted(loss.size, 'evaluation')} are not finite{again}. "
        f"{_updated_by(tables, before, int(number))}Usual causes: a too high learning.local.learning_rate, or very "
        "large values in the data"
    )


def _updated_by(tables: Tables, before: int, number: int) -> str:
    """Return a sentence on the clients whose updates are in the models after one round and up to another."""
    served = tables.column("participations", "served_round").astype(np.float64)
    clients = np.unique(tables.column("participations", "client")[(served > before) & (served <= number)])
    if not clients.size:
        return ""
    rounds = f"round {number}" if number == before + 1 else f"the rounds {before + 1} to {number}"
    more = "" if clients.size <= _NAMED else f" and {counted(clients.size - _NAMED, 'other')}"
    return f"Clients whose updates {rounds} used: {', '.join(map(str, clients[:_NAMED]))}{more}. "


def _not_delivered(tables: Tables) -> str:
    selected, delivered, late, dropped, stale = (
        int(tables.column("rounds", name).sum()) for name in ("selected", "delivered", "late", "dropped", "stale_used")
    )
    if not selected or delivered + stale >= LEAST_DELIVERED * selected:
        return ""
    what = "nothing" if not delivered else "nearly nothing"
    return (
        f"{what} was delivered: {delivered:,} of {counted(selected, 'participation')}; {late:,} late, {dropped:,} "
        f"dropped; they spent up to {', '.join(_longest(tables))}, and rounds lasted up to "
        f"{(tables.column('rounds', 'end_s') - tables.column('rounds', 'start_s')).max(initial=0.0):.3g} s"
    )


def _longest(tables: Tables) -> list[str]:
    """Return in words how long participations have been in each phase at most."""
    names = {
        "downlink_s": "on the downlink",
        "compute_s": "on work",
        "uplink_s": "on the uplink",
        "queue_s": "waiting in a queue",
    }
    longest = {name: float(tables.column("participations", name).max(initial=0.0)) for name in names}
    rounding_s = TIE_ULPS * np.spacing(tables.column("rounds", "end_s").max(initial=0.0))
    longest = {name: seconds if seconds > rounding_s else 0.0 for name, seconds in longest.items()}
    return [
        f"{in_seconds(longest[name])} s {where}" for name, where in names.items() if name != "queue_s" or longest[name]
    ]


def _no_model(tables: Tables) -> str:
    version, delivered = (tables.column("rounds", name) for name in ("model_version", "delivered"))
    if not delivered.sum() or version.max() > 0:
        return ""
    return (
        f"no model was made: the updates of {counted(delivered.size, 'round')}, {int(delivered.sum()):,} in all, were "
        "too few each time (rounds.minimum_updates, learning.aggregation, rounds.policy)"
    )


def _noisy(tables: Tables) -> str:
    known = tables.known("rounds", "noise_to_signal")
    if not known.any():
        return ""
    median = float(np.median(tables.column("rounds", "noise_to_signal")[known].astype(np.float64)))
    if median <= 1.0:
        return ""
    return f"noise is larger than what is learned: {median:.3g} times the energy of the updates in the median round"


def _spent(tables: Tables, budget: float | None) -> str:
    leakage = tables.column("rounds", "largest_leakage")
    if budget is None or not leakage.size or leakage[-1] < NEARLY_SPENT * budget:
        return ""
    return (
        f"a privacy budget is spent: the largest leakage is {leakage[-1]:.4g} of {budget:.4g} epsilon, and what is "
        "left pays for no further update, or for one that is little more than noise"
    )


class Rates:
    def __init__(self) -> None:
        self._fastest, self._slowest = (0.0, ""), (np.inf, "")

    def see(self, batch: pa.RecordBatch) -> None:
        outcome = batch.column("outcome")
        of_label = np.array([label == "delivered" for label in outcome.dictionary.to_pylist()], dtype=bool)
        delivered = of_label[numbers_of(outcome.indices)]
        for way in ("downlink", "uplink"):
            bits, took_s = (numbers_of(batch.column(f"{way}_{unit}")) for unit in ("bits", "s"))
            looked = np.flatnonzero(delivered & (bits > 0) & (took_s > 0))
            if not looked.size:
                continue
            rate = bits[looked] / took_s[looked]
            for at, beyond in ((rate.argmax(), rate.max() > self._fastest[0]), (rate.argmin(), False)):
                row = looked[at]
                words = (
                    f"the {way} of client {batch.column('client')[row]} in round {batch.column('round')[row]}: "
                    f"{bits[row]:.6g} bits in {took_s[row]:.6g} s"
                )
                if beyond:
                    self._fastest = float(rate[at]), words
                if rate[at] < self._slowest[0]:
                    self._slowest = float(rate[at]), words

    def note(self) -> str:
        said = [
            f"{words}, {rate:.3g} bit/s"
            for rate, words in (self._fastest, self._slowest)
            if words and not SLOWEST_BPS <= rate <= FASTEST_BPS
        ]
        return f"a rate is absurd: {'; '.join(dict.fromkeys(said))}" if said else ""
