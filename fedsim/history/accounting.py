"""Seconds, bits and joules of a run by the fate of its participations."""

from typing import Final

import numpy as np
import pyarrow as pa

from fedsim.arrays import FloatArray
from fedsim.history.columns import SECONDS, codes_of
from fedsim.history.outcomes import Fate
from fedsim.history.tables import Tables

PROBE: Final = "probe"
SERVED: Final = (Fate.USED.label, Fate.STALE_USED.label)
_BITS: Final = ("downlink_bits", "uplink_bits")


def by_fate(tables: Tables) -> pa.Table:
    """Return the seconds, bits and joules of the participations of each `Fate`, one row a fate.

    Columns: ``fate``, ``participations``, ``downlink_s``, ``compute_s``, ``queue_s``, ``uplink_s``, their sum
    ``total_s``, ``downlink_bits``, ``uplink_bits``, ``energy_j``, and the shares of all seconds and of all bits,
    ``time_share`` and ``bits_share`` (0 where there are none). If clients were asked questions before a selection, the
    last row is ``"probe"``, which is neither used nor wasted.
    """
    names = (*SECONDS, *_BITS, "energy_j")
    rows, code = list(Fate.labels()), codes_of(tables.participations.column("fate"), Fate)
    count = np.bincount(code, minlength=len(Fate))
    sums = {
        name: np.bincount(code, tables.column("participations", name), minlength=len(Fate)).astype(float)
        for name in names
    }
    if tables.probes is not None:
        rows.append(PROBE)
        count = np.append(count, tables.probes.num_rows)
        sums = {name: np.append(total, tables.column("probes", name).sum()) for name, total in sums.items()}
    total_s = np.sum([sums[name] for name in SECONDS], axis=0)
    bits = np.sum([sums[name] for name in _BITS], axis=0)
    return pa.table(
        {
            "fate": rows,
            "participations": count,
            **{name: sums[name] for name in SECONDS},
            "total_s": total_s,
            **{name: sums[name] for name in (*_BITS, "energy_j")},
            "time_share": _shares(total_s),
            "bits_share": _shares(bits),
        }
    )


def wasted_shares(tables: Tables) -> tuple[float, float]:
    """Return the shares of all seconds and of all bits of clients that did not serve."""
    table = by_fate(tables).to_pydict()
    wasted = [fate not in (*SERVED, PROBE) for fate in table["fate"]]
    return float(np.dot(wasted, table["time_share"])), float(np.dot(wasted, table["bits_share"]))


def _shares(values: FloatArray) -> FloatArray:
    total = values.sum()
    return values / total if total > 0 else np.zeros(values.size)
