"""The cohort of a call, and what the call states of its participations."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from fedsim.bridges.testbed.checks import checked_ids, checked_values
from fedsim.errors import PartError, StepError
from fedsim.per_client import Values, is_one
from fedsim.selectors import Cohort, RoundView
from fedsim.selectors.validation import as_cohort


def checked_cohort(call: str, cohort: Cohort | ArrayLike, view: RoundView | None, clients: int) -> Cohort:
    if not isinstance(cohort, Cohort):
        return Cohort(checked_ids(call, cohort, view, clients))
    ids = checked_ids(call, cohort.client, view, clients)
    if view is None or not ids.size:
        return Cohort(ids)
    if cohort.sampling is not None or cohort.trained:
        raise StepError(
            f"{call}: sampling and trained are not allowed in a cohort of your own; allowed: draws, weights, work and "
            "allocation, or the cohort that select has returned"
        )
    try:
        return as_cohort(replace(cohort, client=ids), view, call)
    except PartError as error:
        raise StepError(f"{call}: {error.in_a_line()}") from None


def checked_statement(
    call: str, size: int, flops_per_sample: float | None, statement: Mapping[str, ArrayLike | None]
) -> dict[str, Values]:
    """Return what a call states of its participations by name: one number for all clients, or one for each."""
    stated = {name: checked_values(call, name, value, size) for name, value in statement.items() if value is not None}
    if "flops" not in stated:
        return stated
    if "samples" in stated:
        raise StepError(f"{call}: samples and flops are both given; allowed: one of the two")
    if not flops_per_sample:
        raise StepError(
            f"{call}: flops: {statement['flops']!r} is not allowed, as the scenario does not state the operations of a "
            "sample; allowed: learning.flops_per_sample, or samples"
        )
    work = stated.pop("flops")
    stated["samples"] = work / flops_per_sample if is_one(work) else np.asarray(work) / flops_per_sample
    return stated
