"""Uniform sampling of data by a fixed ratio, the naive method to which FedSampling's paper compares."""

import numpy as np

from fedsim.selectors.contracts import Cohort, PublishedSelector, RoundView, Sampling
from fedsim.selectors.fedsampling.fedsampling import PAPER
from fedsim.selectors.validation import check_numbers, check_shares


class FixedRatio(PublishedSelector):
    """Let all clients draw each of their samples with a fixed probability, and average their updates.

    No client is asked for its size, so that an update cannot be divided by the number of samples drawn by all. With
    ``rounds.weights = "samples"`` the mean is by the numbers drawn, which clients then disclose. With ``"uniform"``
    they disclose nothing, and the mean is biased (section 3.3). A client that draws nothing sends a message without
    bits.

    Parameters
    ----------
    ratio : float in (0, 1]
        Probability by which a client draws a sample; 0.01 is the paper's example.
    """

    paper = f"{PAPER}, section 3.3"
    draws_samples = True

    def __init__(self, ratio: float) -> None:
        check_numbers(0, above=True, ratio=ratio)
        check_shares(ratio=ratio)
        self.ratio = float(ratio)

    def select(self, view: RoundView, rng: np.random.Generator) -> Cohort:
        return Cohort(view.client.copy(), sampling=Sampling(probability=self.ratio))
