"""Clients that have enough of their privacy budgets left to be selected."""

from fedsim.arrays import BoolArray, FloatArray, IntArray, filled
from fedsim.devices.tracking import AvailabilityTracker, PlainTracker
from fedsim.privacy import PrivacyAccountant


class BudgetLeft:
    """An eligibility criterion: a client with less than some epsilon left is no candidate.

    Epsilon is never given back, so that such a client never becomes a candidate again.

    Parameters
    ----------
    accountant : of the run
    least_epsilon : what a candidate must have left, > 0
    """

    def __init__(self, accountant: PrivacyAccountant, least_epsilon: float) -> None:
        self._accountant, self._least_epsilon = accountant, least_epsilon

    def tracker(self, client: IntArray) -> AvailabilityTracker:
        """Return what looks at each account, since uploads begin between looks."""
        return PlainTracker(lambda ids, time_s, _: self.holds(ids, time_s), client, "look")

    def holds(self, client: IntArray, time_s: float) -> BoolArray:
        """Return whether each client has enough epsilon left, shape (n,)."""
        left: FloatArray = self._accountant.budget.total - self._accountant.spent[client]
        return left >= self._least_epsilon

    def window_s(self, client: IntArray, time_s: float) -> tuple[FloatArray, FloatArray]:
        """Return the present instant, or `inf` where too little is left, and no end; shape (n,)."""
        never = filled(client.size, float("inf"))
        from_s = never.copy()
        from_s[self.holds(client, time_s)] = time_s
        return from_s, never
