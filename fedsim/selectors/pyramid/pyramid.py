"""PyramidFL: Oort's ranking between clients, and as much local work within a client as its slack allows.

Rules and numbers were taken from the published code (liecn/PyramidFL: oort/oort.py and training/param_server.py), not
checked against the paper's text.
"""

from dataclasses import dataclass, field
from typing import Annotated, Literal

import numpy as np

from fedsim.arrays import FloatArray
from fedsim.measurements import MOST_WORK
from fedsim.selectors.contracts import Cohort, RoundView
from fedsim.selectors.oort.fedscale import OortFedScale
from fedsim.selectors.options import AtLeast0, Count, Range, Share
from fedsim.selectors.sampling import TIME_COLUMNS, whole
from fedsim.units import Bound


@dataclass(eq=False, repr=False)
class PyramidFl(OortFedScale):
    """Rank clients as Oort does, and let each of the cohort do more local work in the time that it would only wait.

    The round lasts as long as its slowest client is expected to take, T. A client whose participation takes t, of which
    c is its local work of E iterations, does ``1 + min(most_more, beta floor((T - t) / (c / E)) / E)`` times that work.

    Parameters
    ----------
    cohort : int >= 1
        Number of clients per round; all candidates if there are no more than that. The code selects 1.3 times as many
        and takes the fastest; in fedsim that is part of the round policy.
    beta : float in [0, 1]
        Share of its slack that a client works (1 by default in the code, 0.5 in its configurations).
    most_more : float from 0 to 99
        Largest work beside the usual one, in shares of that (10 in the code).
    steps : int >= 1 or None
        E, by whose part the work grows; None for any share, which the client rounds down to whole steps.
    until : ``"slowest"`` or ``"deadline"``
        T: the slowest client of the cohort, but not beyond the deadline of the round; or that deadline where there is
        one, so that the slowest client has slack too.
    alpha, exploration, exploration_decay, exploration_least : as of `OortFedScale`
    threshold, pacer_step, pacer_delta, clip, cut_off, sample_window : as of `OortFedScale`, with the code's numbers
    silent : as of `OortFedScale`
    samples_per_round : as of `OortFedScale`

    Notes
    -----
    The times are those that clients declare: means, for a medium without other clients. Without declared times, and for
    a client whose work takes no time, there is no more work than usual.

    The code also lets clients drop parameters of their updates, those of low utility the most, to upload faster. That
    is not part of this selector: the size of updates is a choice of the scenario (``learning.compression``), one for
    all clients. The code's statistical utility counts the samples of a round; here it is Oort's, with
    ``samples_per_round``.
    """

    paper = (
        "Li, Zeng, Zhang and Cao, PyramidFL: A Fine-grained Client Selection Framework for Efficient Federated "
        "Learning, MobiCom 2022"
    )

    beta: Share = 1.0
    most_more: Annotated[float, Range(0, MOST_WORK - 1)] = 10.0
    steps: Annotated[Count, Bound(0, 10**8)] | None = None
    until: Literal["slowest", "deadline"] = "slowest"
    exploration_decay: Share = 0.95
    exploration_least: Share = 0.2
    threshold: AtLeast0[float] = 10.0
    clip: Share = 0.98
    cut_off: AtLeast0[float] = 0.7
    blacklist_after: Count | None = field(default=None, init=False)
    blacklist_share: Share = field(default=0.3, init=False)

    def select(self, view: RoundView, rng: np.random.Generator) -> Cohort:
        client = super().select(view, rng).client
        if view.features.shape[1] < TIME_COLUMNS or not client.size:
            return Cohort(client)
        return Cohort(client, work=self.work(view.features[np.searchsorted(view.client, client)], view.deadline_s))

    def work(self, features: FloatArray, deadline_s: float | None) -> FloatArray:
        """Return the work of each client of a cohort as a share of the usual one, shape (n,), at least 1."""
        whole_s, work_s = features[:, :TIME_COLUMNS].sum(axis=1), features[:, 1]
        reachable = np.isfinite(whole_s)
        last_s = float(whole_s[reachable].max(initial=0.0))
        if deadline_s is not None:
            last_s = deadline_s if self.until == "deadline" else min(last_s, deadline_s)
        works = reachable & (work_s > 0)
        slack_s = np.where(works, last_s - np.where(reachable, whole_s, 0.0), 0.0)
        with np.errstate(over="ignore"):
            more = np.maximum(slack_s, 0.0) / np.where(works, work_s, 1.0)
        if self.steps is not None:
            more = whole(np.minimum(more, MOST_WORK / max(self.beta, 1e-9)) * self.steps) / self.steps
        return np.asarray(1.0 + np.minimum(self.beta * more, self.most_more))
