"""The scenario's selector at a server whose cohorts come from outside: it may never be asked."""

from dataclasses import replace

import numpy as np

from fedsim.selectors import Cohort, Reports, RoundView, SelectorPort


def told_once_asked(selector: SelectorPort) -> SelectorPort:
    """Return a selector that gets reports from the round on in which it is first asked.

    Before its first view a method knows no clients, and many have no place for such reports.
    """
    return _Asked(selector).port


class _Asked:
    def __init__(self, selector: SelectorPort) -> None:
        self._selector, self._asked = selector, False
        self.port = replace(selector, select=self._select, observe=self._observe)

    def _select(self, view: RoundView, rng: np.random.Generator) -> Cohort:
        self._asked = True
        return self._selector.select(view, rng)

    def _observe(self, reports: Reports) -> None:
        if self._asked:
            self._selector.observe(reports)
