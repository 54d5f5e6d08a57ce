"""A selector at an edge server: its crowd is the clients of the edge, numbered from 0."""

from dataclasses import replace

import numpy as np

from fedsim.arrays import IntArray
from fedsim.selectors import Cohort, Probe, Reports, RoundView, Selector, as_cohort


class EdgeSelector:
    """Lets a selector see the clients of one edge server as a crowd of their own; itself a selector.

    Ids, the number of clients and the samples of the whole crowd are the edge's, so that a method which goes
    by shares of the crowd or keeps an array over it works as at a server of its own.

    Parameters
    ----------
    selector : Selector
    member : ids of the edge's clients in the whole crowd, ascending
    samples : training samples of every client of the whole crowd, shape (K,)
    """

    def __init__(self, selector: Selector, member: IntArray, samples: IntArray) -> None:
        self.inner = selector
        self.needs: tuple[str, ...] = tuple(getattr(selector, "needs", ()))
        self._member = member
        self._samples = int(samples[member].sum())
        if hasattr(selector, "probe"):
            self.probe = self._probe

    def select(self, view: RoundView, rng: np.random.Generator) -> Cohort:
        """Return the selector's cohort, in ids of the whole crowd."""
        seen = self._seen(view)
        cohort = as_cohort(self.inner.select(seen, rng), seen, self.inner)
        return replace(cohort, client=self._member[cohort.client])

    def observe(self, reports: Reports) -> None:
        """Tell the selector what became of its cohort."""
        self.inner.observe(replace(reports, client=self._own(reports.client)))

    def _probe(self, view: RoundView, rng: np.random.Generator) -> Probe | None:
        """Return the selector's question, to ids of the whole crowd."""
        probe: Probe | None = self.inner.probe(self._seen(view), rng)  # type: ignore[attr-defined]
        return None if probe is None else replace(probe, client=self._member[probe.client])

    def _seen(self, view: RoundView) -> RoundView:
        answers = view.answers
        if answers is not None:
            answers = replace(answers, client=self._own(answers.client))
        return replace(
            view,
            client=self._own(view.client),
            clients=self._member.size,
            total_samples=self._samples,
            answers=answers,
        )

    def _own(self, client: IntArray) -> IntArray:
        return np.searchsorted(self._member, client)
