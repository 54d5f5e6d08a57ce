"""FedSampling: each sample of all clients is drawn with the same probability; and the fixed ratio of its comparison."""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from fedsim.arrays import FloatArray, IntArray
from fedsim.selectors.contracts import Cohort, Probe, PublishedSelector, RoundView, Sampling
from fedsim.selectors.options import Above0, AtLeast0, Count, PositiveShare, Several, check_options
from fedsim.selectors.questions import RandomizedResponse
from fedsim.selectors.sampling import grown
from fedsim.units import Bits, Seconds

PAPER = "Qi, Wu, Lyu, Huang and Xie, FedSampling: A Better Sampling Strategy for Federated Learning, IJCAI 2023"


@dataclass(eq=False, repr=False)
class FedSampling(PublishedSelector):
    """Draw about K samples among all clients, each with the same probability, and add up the clients' updates.

    The server asks all candidates for their numbers of samples; their answers are randomised, and the number of
    all samples N is estimated from their sum. Each client draws each of its samples with probability K / N, works on
    those, and sends its update times the number drawn over K. The server adds updates up. With one step on all that was
    drawn (``local.batch_size`` at least as large, one epoch), a round is a step of centralised training on about K
    samples.

    Parameters
    ----------
    samples : int >= 1
        Samples that a round draws on average (K); 2048 in the paper.
    threshold : int >= 2
        Answers are below it (M); 300 in the paper.
    epsilon : float > 0
        Privacy cost of an answer, from which the probability of a true answer follows; 3 in the paper.
    alpha : float in (0, 1] or None
        That probability, in place of the one that follows from ``epsilon``; 0.5 in the published code. With 1 answers
        are exact.
    clip : bool
        Whether clients with ``threshold`` samples or more answer as if they had one less than that; the published code
        does not, and then such a client may disclose its size for certain.
    query : ``"each-round"`` or ``"once"``
        Whether clients are asked in every round, as in the paper, or each client once, the first time that it is to
        take part. A client whose answer has not arrived is asked again, and answers the same again: that costs nothing
        more.
    anonymous : bool
        Whether nothing links the answers of a client in different rounds, as the paper allows for: then they cost one
        answer together, which is the paper's claim (section 3.5.2) and no bound. Otherwise each costs ``epsilon``. It
        counts in runs with privacy alone.
    cohort : int >= 1 or None
        Number of clients of a round, drawn uniformly, among which K samples are drawn; None for all candidates. A
        policy that asks for a number of clients, as ``k-fastest`` does, takes the place of both: K samples are then
        drawn among as many clients.
    up_bits : float >= 0
        Size of an answer.
    down_bits : float >= 0
        Size of the message with K and N, and of a question without the model.
    wait_s : float > 0 or None
        Longest wait for answers; None for all of them.

    Notes
    -----
    The model goes down with the question, and the ratio K / N follows in a small message. Where clients are asked once,
    the model goes down with the ratio. A client that draws nothing sends a message without bits, at once; with privacy
    of updates, or secure aggregation, it sends as much as all others do. The ratio is 1 at most, and N at least the
    number of answers. If all clients asked are silent, N is the number of candidates.

    At an edge server K is the number of samples among the edge's clients. Answers do not hide the sum of their sizes
    from a synchronous cloud, which weights the edges' models by the true numbers of samples.
    """

    paper = PAPER
    communication = "a question down and a number up for each client, and the ratio down"
    draws_samples = True
    asks_sizes = True

    samples: Count
    threshold: Several = 300
    epsilon: Above0[float] = 3.0
    alpha: PositiveShare | None = None
    clip: bool = True
    query: Literal["each-round", "once"] = "each-round"
    anonymous: bool = False
    cohort: Count | None = None
    up_bits: AtLeast0[Bits] = 32.0
    down_bits: AtLeast0[Bits] = 64.0
    wait_s: Above0[Seconds] | None = None

    def __post_init__(self) -> None:
        check_options(self)
        self.response = (
            RandomizedResponse.of_epsilon(self.threshold, self.epsilon, self.clip)
            if self.alpha is None
            else RandomizedResponse(self.threshold, self.alpha, self.clip)
        )
        cost = self.response.epsilon
        self.sizes_cost = 0.0 if math.isinf(cost) else cost
        self.sizes_paid_once = self.anonymous or self.query == "once"
        self.sizes_unlinked = self.anonymous and self.query == "each-round"
        self._asked: IntArray = np.zeros(0, dtype=np.int64)
        self._round = -1
        # The answer of each client that was asked once; 0 before.
        self._known: IntArray = np.zeros(0, dtype=np.int64)

    def probe(self, view: RoundView, rng: np.random.Generator) -> Probe | None:
        self._asked, self._round = self._drawn(view, rng), view.round
        if self.query == "each-round":
            return self._question(self._asked, None)
        self._known = grown(self._known, view.clients)
        unknown = self._asked[self._known[self._asked] == 0]
        return self._question(unknown, self.down_bits) if unknown.size else None

    def select(self, view: RoundView, rng: np.random.Generator) -> Cohort:
        answers = view.answers
        client = view.client[:0] if answers is None else answers.client
        sizes: IntArray | None = None if answers is None else answers.samples
        if self.query == "once":
            self._known = grown(self._known, view.clients)
            if sizes is not None:
                self._known[client] = sizes
            asked = self._asked if self._round == view.round else view.client
            client = asked[(self._known[asked] > 0) & view.includes(asked)]
            sizes = self._known[client]
        if sizes is None or not client.size:
            everyone = self._drawn(view, rng)
            return self._of(everyone, float(max(everyone.size, 1)), has_model=False)
        order = np.argsort(client)
        return self._of(client[order], self.response.estimate(sizes), has_model=self.query == "each-round")

    def _of(self, client: IntArray, total: float, *, has_model: bool) -> Cohort:
        """Return a cohort that draws K of a number of samples."""
        ratio = min(self.samples / total, 1.0)
        sampling = Sampling(probability=ratio, divisor=float(self.samples), bits=self.down_bits, has_model=has_model)
        each: FloatArray = np.ones(client.size)
        return Cohort(client, weights=each, sampling=sampling)

    def _drawn(self, view: RoundView, rng: np.random.Generator) -> IntArray:
        """Return the clients of a round, ascending."""
        size = self.cohort if view.wanted is None else view.wanted
        if size is None or view.count <= size:
            return view.client.copy()
        return view.pick(np.sort(rng.choice(view.count, size=size, replace=False)))

    def _question(self, client: IntArray, down_bits: float | None) -> Probe:
        return Probe(
            client=client,
            asks="samples",
            down_bits=down_bits,
            up_bits=self.up_bits,
            response=self.response,
            wait_s=self.wait_s,
        )


@dataclass(eq=False, repr=False)
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

    ratio: PositiveShare

    def __post_init__(self) -> None:
        check_options(self)
        self.ratio = float(self.ratio)

    def select(self, view: RoundView, rng: np.random.Generator) -> Cohort:
        return Cohort(view.client.copy(), sampling=Sampling(probability=self.ratio))
