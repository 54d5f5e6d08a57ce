"""Where the seconds, bits and joules of a run went, and whether they served."""

from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from fedsim.arrays import FloatArray
from fedsim.history.columns import SECONDS, codes_of
from fedsim.history.outcomes import FATES

if TYPE_CHECKING:
    from fedsim.history.history import History


SERVED: Final = FATES[:2]
PROBE: Final = "probe"
BITS: Final = ("downlink_bits", "uplink_bits")


def by_fate(history: "History") -> pa.Table:
    """Return a row for each `Fate`: where the seconds, bits and joules of participations with that fate went.

    Columns: ``fate``, ``participations``, ``downlink_s``, ``compute_s``, ``queue_s``, ``uplink_s``, their sum
    ``total_s``, ``downlink_bits``, ``uplink_bits``, ``energy_j``, and the shares of all seconds and of all bits,
    ``time_share`` and ``bits_share`` (0 where there are none at all). Clients that were asked questions before a
    selection have a last row, ``"probe"``: that is neither used nor wasted.
    """
    code, names = codes_of(history.participations.column("fate"), FATES), (*SECONDS, *BITS, "energy_j")
    sums = {
        name: np.bincount(code, history.column("participations", name), minlength=len(FATES)).astype(float)
        for name in names
    }
    count, rows = np.bincount(code, minlength=len(FATES)), list(FATES)
    if history.probes is not None:
        rows.append(PROBE)
        count = np.append(count, history.probes.num_rows)
        sums = {name: np.append(total, history.column("probes", name).sum()) for name, total in sums.items()}
    total_s = np.sum([sums[name] for name in SECONDS], axis=0)
    bits = np.sum([sums[name] for name in BITS], axis=0)
    return pa.table(
        {
            "fate": rows,
            "participations": count,
            **{name: sums[name] for name in SECONDS},
            "total_s": total_s,
            **{name: sums[name] for name in (*BITS, "energy_j")},
            "time_share": _shares(total_s),
            "bits_share": _shares(bits),
        }
    )


def wasted_shares(history: "History") -> tuple[float, float]:
    """Return the shares of all seconds and of all bits that clients spent and that did not serve."""
    table = by_fate(history).to_pydict()
    wasted = [fate not in (*SERVED, PROBE) for fate in table["fate"]]
    return float(np.dot(wasted, table["time_share"])), float(np.dot(wasted, table["bits_share"]))


def _shares(values: FloatArray) -> FloatArray:
    total = values.sum()
    return values / total if total > 0 else np.zeros(values.size)
