"""Seconds, bits and joules of a run by the fate of its participations."""

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from fedsim.arrays import FloatArray
from fedsim.history.columns import SECONDS, codes_of
from fedsim.history.outcomes import Fate
from fedsim.history.tables import Tables
from fedsim.inputs.arrow import numbers_of

PROBE: Final = "probe"
SECURE: Final = "secure-aggregation"
SERVED: Final = (Fate.USED.label, Fate.STALE_USED.label)
_BITS: Final = ("downlink_bits", "uplink_bits")


class SpentByFate:
    """Seconds, bits and joules of participations by their `Fate`, added up row after row."""

    def __init__(self) -> None:
        self.count = np.zeros(len(Fate), dtype=np.int64)
        self.sums = {name: np.zeros(len(Fate)) for name in (*SECONDS, *_BITS, "energy_j")}

    def add(self, participations: pa.RecordBatch) -> None:
        """Add the rows of a batch; the sums are the same however rows are divided into batches."""
        code = codes_of(participations.column("fate"), Fate)
        np.add.at(self.count, code, 1)
        for name, total in self.sums.items():
            np.add.at(total, code, numbers_of(participations.column(name)))


def by_fate(tables: Tables, participations: Iterable[pa.RecordBatch] | None = None) -> pa.Table:
    """Return the seconds, bits and joules of the participations of each `Fate`, one row a fate.

    Columns: ``fate``, ``participations``, ``downlink_s``, ``compute_s``, ``queue_s``, ``uplink_s``, their sum
    ``total_s``, ``downlink_bits``, ``uplink_bits``, ``energy_j``, and the shares of all seconds and of all bits,
    ``time_share`` and ``bits_share`` (0 where there are none). Further rows, neither used nor
    wasted: ``"probe"`` where clients were asked questions before a selection, ``"secure-aggregation"`` for its steps.

    Parameters
    ----------
    tables : of the run
    participations : the participations batch by batch, where they are too many for memory
    """
    rows, columns = _by_fate(tables, participations)
    return pa.table({"fate": rows, **columns})


def _by_fate(
    tables: Tables, participations: Iterable[pa.RecordBatch] | None
) -> tuple[list[str], dict[str, NDArray[Any]]]:
    """Return the names of the rows of `by_fate`, and its other columns as arrays."""
    rows, of_fates = list(Fate.labels()), SpentByFate()
    for batch in tables.participations.to_batches() if participations is None else participations:
        of_fates.add(batch)
    count, sums = of_fates.count, of_fates.sums
    for row, table in ((PROBE, tables.probes), (SECURE, tables.secure_steps)):
        if table is not None:
            rows.append(row)
            count = np.append(count, table.num_rows)
            sums = {name: np.append(total, numbers_of(table.column(name)).sum()) for name, total in sums.items()}
    total_s = np.sum([sums[name] for name in SECONDS], axis=0)
    bits = np.sum([sums[name] for name in _BITS], axis=0)
    return rows, {
        "participations": count,
        **{name: sums[name] for name in SECONDS},
        "total_s": total_s,
        **{name: sums[name] for name in (*_BITS, "energy_j")},
        "time_share": shares_of(total_s),
        "bits_share": shares_of(bits),
    }


class Spent(NamedTuple):
    """What clients have spent in all, probes included, and the shares of it that did not serve."""

    downlink_bits: float
    uplink_bits: float
    energy_j: float
    wasted_time: float
    wasted_bits: float
    wasted_work: float
    wasted_energy: float


def spent(tables: Tables, participations: Iterable[pa.RecordBatch] | None = None) -> Spent:
    """Return what clients have spent in all, and which shares did not serve; arguments as for `by_fate`."""
    rows, column = _by_fate(tables, participations)
    wasted = np.array([fate not in (*SERVED, PROBE, SECURE) for fate in rows])
    shares = column["time_share"], column["bits_share"], shares_of(column["compute_s"]), shares_of(column["energy_j"])
    totals = (float(column[name].sum()) for name in (*_BITS, "energy_j"))
    return Spent(*totals, *(float(share[wasted].sum()) for share in shares))


def shares_of(values: ArrayLike) -> FloatArray:
    total = np.sum(values)
    return np.divide(values, total) if total > 0 else np.zeros(np.size(values))
