"""The clients of a run as they are before its first round, for the table ``clients``."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fedsim.arrays import FloatArray, IntArray
from fedsim.devices import ComputeTimes
from fedsim.history.schema import CLIENTS
from fedsim.learning.sizes import Sizes
from fedsim.network import Links
from fedsim.rounds.effects.contract import Shown

Columns = dict[str, NDArray[Any]]


def described(
    links: Links,
    compute: ComputeTimes,
    learner: Sizes,
    shown: Mapping[str, Shown],
    flops_per_sample: float | None = None,
) -> pa.Table:
    """Return the table of the clients; null where a network, a device or a learner has no such value."""
    everyone = np.arange(learner.samples.size)
    known = {"client": everyone, **_of_links(links), **_of_work(compute, learner, everyone, flops_per_sample)}
    known |= {column.name: shown[column.name](everyone, 0.0) for column in CLIENTS.columns if column.name in shown}
    columns = [
        column.from_codes(known[column.name]) if column.name in known else pa.nulls(everyone.size, column.type)
        for column in CLIENTS.columns
    ]
    return pa.Table.from_arrays(columns, schema=CLIENTS.arrow)


def _of_links(links: Links) -> Columns:
    facts = links.describe()
    known: Columns = {}
    if links.serving is not None:
        known["site"] = np.asarray(links.serving)
    if facts.positions_m is not None:
        known |= {"x_m": facts.positions_m[:, 0], "y_m": facts.positions_m[:, 1]}
    if facts.distance_m is not None:
        known["distance_m"] = facts.distance_m
    for number, direction in enumerate(("downlink", "uplink")):
        if facts.snr is not None:
            with np.errstate(divide="ignore"):
                known[f"{direction}_snr_db"] = _finite(10.0 * np.log10(facts.snr[number]))
        if facts.rate_bps is not None:
            known[f"{direction}_bps"] = _finite(facts.rate_bps[number])
    return known


def _of_work(compute: ComputeTimes, learner: Sizes, everyone: IntArray, flops_per_sample: float | None) -> Columns:
    samples = learner.samples
    known: Columns = {"samples": np.where(samples > 0, samples, -1)}
    labels = learner.label_counts
    if labels is not None:
        known |= {"labels": labels, "classes": np.count_nonzero(labels, axis=1)}
    passed = learner.work_samples(everyone)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        speed = passed / compute.expected_s(passed)
    known["samples_per_s"] = np.where(passed > 0, _finite(speed), np.nan)
    if flops_per_sample is not None:
        known["flops_per_s"] = flops_per_sample * known["samples_per_s"]
    return known


def _finite(values: FloatArray) -> FloatArray:
    """Return finite numbers, and NaN for the others."""
    return np.where(np.isfinite(values), values, np.nan)
