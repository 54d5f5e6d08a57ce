"""The contract of a learner, without torch: handles, not numbers.

A request for an update computes nothing. Trainings run when a number is needed, for the updates that were delivered; an
update that is never used is never trained.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from fedsim.answers import (
    AnswerError,
    Contract,
    Flag,
    Free,
    Given,
    InstanceOf,
    Number,
    Numbers,
    OptionalOf,
    PartOf,
    in_words,
    same_shape,
    shaped,
)
from fedsim.arrays import FloatArray, IntArray
from fedsim.learning.aggregation.combining import Of
from fedsim.learning.drawn_samples import Drawn
from fedsim.learning.evaluation import (
    PENDING_EVALUATION,
    ClientEvaluations,
    PendingEvaluation,
    evaluations_of_clients,
)
from fedsim.learning.models.layout import Widths
from fedsim.learning.server_optimizers.contracts import ServerOptimizer
from fedsim.learning.sizes import Sizes, Work
from fedsim.measurements import MOST_WORK


class Model(Protocol):
    """A server's model: the digest of its lineage, and its version."""

    @property
    def digest(self) -> str:
        """Hash of everything that determines the numbers."""

    @property
    def version(self) -> int:
        """Number of aggregations that led to it, from 0."""


class Update(Protocol):
    """What one client sends: the difference between its trained model and the model it started from."""

    @property
    def digest(self) -> str:
        """Hash of everything that determines the numbers."""


@dataclass(frozen=True)
class Release:
    """How an update is made private before it is sent."""

    epsilon: float
    index: int


def label_counts(answer: object, given: Given) -> IntArray:
    labels = np.shape(answer)[1] if isinstance(answer, np.ndarray) and answer.ndim == 2 else 1
    return Numbers(shaped("clients", labels), least=0, dtype=np.int64)(answer, given)


def measured(answer: object, given: Given) -> dict[str, NDArray[Any]]:
    """Check one array for each measurement, with a row for each update; an unknown number is NaN."""
    if not isinstance(answer, Mapping) or set(answer) != set(given["needs"]):
        raise AnswerError(in_words(answer), f"arrays of the names {', '.join(given['needs'])}")
    found, updates = {}, len(given["updates"])
    for name, column in answer.items():
        array = np.asarray(column)
        if array.dtype.kind != "f" or array.shape[:1] != (updates,):
            raise AnswerError(f"{name} = {in_words(array)}", f"floating-point numbers of {updates} rows")
        found[name] = array.copy()
    return found


class Lineage(Protocol):
    """Models and updates as handles: what is made of what; to ask computes nothing."""

    def initial(self) -> Model:
        """Return the model of version 0."""

    def updates(
        self,
        model: Model,
        client: IntArray,
        releases: Mapping[int, Release] | None = None,
        work: FloatArray | None = None,
        repeat: int = 0,
        level: IntArray | None = None,
        drawn: Drawn | None = None,
    ) -> Sequence[Update]:
        """Return what each client of a cohort would send after training from a model; computes nothing.

        Parameters
        ----------
        model : the model that they all start from
        client : ids, shape (n,)
        releases : how updates are made private, by position in ``client``; the others are sent as they are
        work : share of the local work that each does, in (0, 100], shape (n,); all of it if None
        repeat : number of updates of these clients from this version of the model so far; each has its own order of
            batches
        level : place of each client's width among `widths`, shape (n,); None for the whole model
        drawn : samples that each client has drawn to train on; None for all of its own. Of a client that has drawn
            none, what it sends is zero before it is made private
        """

    def aggregate(
        self, model: Model, updates: Sequence[Update], weights: FloatArray, *, of: Of = "difference"
    ) -> Model:
        """Return the next model from delivered updates with their weights; computes nothing.

        Write h_i for what client i sends (its trained model minus the one it started from, made private if there
        is a release) and base_i for the model that it started from, which may be older than ``model``.

        Parameters
        ----------
        model : the model to go on from
        updates : fresh or stale
        weights : w_i, used as they are given, in the order of the updates, shape (n,)
        of : what is combined. ``"difference"``: model + sum of w_i h_i, which with weights of sum 1 is FedAvg
            where all updates are fresh, and with stale ones FedBuff (Nguyen et al., AISTATS 2022, Algorithm 1).
            ``"model"``: (1 - sum of w_i) model + sum of w_i (base_i + h_i), FedAsync's mixing (Xie et al., 2019,
            Algorithm 1) with one update, SAFA's average of cached models (Wu et al., 2021) with weights of sum 1.
            Both are the same where every base_i is ``model``.

            That is federated averaging. Another server optimiser steps from ``model`` with what averaging would add to
            it, and with the state that ``model`` carries; see `fedsim.learning.server_optimizers`. If too few updates
            have a weight, the next model is ``model``, and the updates are discarded.
        """

    def merge(self, models: Sequence[Model], weights: FloatArray, version: int | None = None) -> Model:
        """Return the weighted mean of whole models, such as edge servers'; computes nothing.

        The cloud's step of hierarchical federated averaging (Liu et al., "Client-edge-cloud hierarchical federated
        learning", ICC 2020, Algorithm 1). No server optimiser takes part: see `server_step`.

        Parameters
        ----------
        models : n of them
        weights : at least 0, of sum 1, shape (n,)
        version : of the mean; one more than the highest of the models' if it is None
        """

    def trained(self, base: Model, update: Update) -> Model:
        """Return a client's own model: the one that it started from plus what it sent; computes nothing.

        No server optimiser takes part. SAFA's cache holds such models.

        Parameters
        ----------
        base : model that the client started from
        update : what it sent
        """

    def server_step(self, model: Model, mean: Model, optimizer: ServerOptimizer | None = None) -> Model:
        """Return the server optimiser's step from a server's model with the update ``mean - model``.

        With federated averaging that is ``mean`` itself. The version is that of ``mean``; nothing is computed.

        Parameters
        ----------
        model : the server's present model, which carries the state of its optimiser
        mean : where federated averaging would go, as made by `merge`
        optimizer : a cloud's own rule; the learner's if it is None
        """

    def with_state_of(self, model: Model, previous: Model) -> Model:
        """Return a model with the state that the server optimiser had in another one; computes nothing.

        An edge server that fetches the cloud's model goes on from the state of its own last model: states are not sent
        over the backhaul. With an optimiser that keeps no state it is ``model`` itself.

        Parameters
        ----------
        model : whose numbers count
        previous : whose state counts
        """


class ModelNumbers(Protocol):
    """What is computed: measurements, evaluations, and the numbers of models."""

    @property
    def work(self) -> Work:
        """What has been computed, and what was found in a store."""

    def measure(self, updates: Sequence[Update], needs: Collection[str]) -> dict[str, NDArray[Any]]:
        """Return measurements of delivered updates; trainings that they need and that have not run are run.

        Only the measurements asked for are computed. Without learning every number is NaN and an update is empty.

        Parameters
        ----------
        updates : n of them
        needs : some of `fedsim.measurements.MEASUREMENTS` and of ``HIDDEN`` there, with their meanings and shapes

        Raises
        ------
        ValueError
            If a name is no measurement.
        """

    def deviations(
        self, fresh: Sequence[Update], fresh_weights: FloatArray | None, stale: Sequence[Update]
    ) -> FloatArray:
        """Return the deviation of each stale update from the mean of the fresh ones, REFL's Lambda_s.

        With m the mean of n fresh updates it is ``|(u + n m) / (n + 1) - m|^2 / |m|^2`` for a stale update u: by
        how much, relatively, the mean moves when u joins (Abdelmoniem et al., "REFL: Resource-efficient federated
        learning", EuroSys 2023, section 5). Updates are whole vectors of parameters, as the server receives them.
        The reference code instead adds up one such ratio for every layer, of whole models and not of differences.

        Parameters
        ----------
        fresh : updates of this round
        fresh_weights : weights of their mean, at least 0, scaled to sum 1; None for equal ones, the paper's rule
        stale : updates of earlier rounds

        Returns
        -------
        array of shape (len(stale),), at least 0. Zero for all without a mean to deviate from: no fresh update, weights
        that are all zero, or a mean of exactly zero. Zero without learning.
        """

    def probe_losses(self, model: Model, client: IntArray, samples: int | None, round_: int) -> FloatArray:
        """Return the mean loss of a model on each client's own data, shape (n,); NaN without learning.

        Power-of-choice asks its candidates for it (Cho, Wang and Joshi, "Client selection in federated learning:
        convergence analysis and power-of-choice selection strategies", 2020): pow-d with ``samples = None``, cpow-d
        with the size of a mini-batch.

        Parameters
        ----------
        model : trained first if it has not been
        client : ids, shape (n,)
        samples : size of the mini-batch, drawn without replacement for (client, round); None, or at least as many
            as the client has, for all its data
        round_ : from 1

        Raises
        ------
        ValueError
            If ``samples`` is below 1.
        """

    def start_evaluation(self, model: Model) -> PendingEvaluation | None:
        """Run the trainings that a model needs, and begin its evaluation on the test set; None without learning.

        Where clients use models of their own, it is the mean of these, each on the client's local test samples.

        The evaluation may go on while later trainings run. Only few are under way at a time: a further one waits.

        Parameters
        ----------
        model : any model of this run

        Returns
        -------
        PendingEvaluation or None
        """

    def evaluate_clients(self, model: Model) -> ClientEvaluations | None:
        """Return accuracy and loss of a model on the local test samples of each client; None without learning.

        Where a local algorithm leaves layers with the clients, each client's model is the server's with its own
        layers, as they are at this call.

        Parameters
        ----------
        model : trained first if it has not been
        """

    def flush(self) -> None:
        """Put into the store what has been computed and waits to be put there; called when a run is over."""

    def export(self, model: Model) -> Mapping[str, NDArray[Any]] | None:
        """Return a model's arrays under the names in its module, parameters and buffers; None without learning.

        They are what ``load_state_dict`` of the module that `architecture` builds takes.

        Parameters
        ----------
        model : any model of this run
        """


class Learner(Sizes, Lineage, ModelNumbers, Protocol):
    """What is learned in one run.

    Examples
    --------
    >>> from fedsim.learning import NoLearning
    >>> from fedsim.run_setup import RunSetup
    >>> from fedsim.streams import Streams
    >>> learner = NoLearning(samples_per_client=50).build(RunSetup(3, Streams(0)))
    >>> first, weights = learner.initial(), np.array([0.5, 0.5])
    >>> learner.aggregate(first, learner.updates(first, np.array([0, 2])), weights).version
    1
    """


LEARNER: Final = Contract(
    "learner",
    Learner,
    {
        "notes": InstanceOf(tuple),
        "flops_per_sample": Number(least=0, none=True),
        "model_bits": Number(least=0, none=True),
        "update_bits": Number(least=0, none=True),
        "remembers": Flag(),
        "widths": OptionalOf(InstanceOf(Widths)),
        "samples": Numbers(shaped("clients"), least=0, dtype=np.int64),
        "label_counts": OptionalOf(label_counts),
        "work_samples": Numbers(same_shape("client"), least=0),
        "whole_steps": Numbers(same_shape("client"), least=0, most=MOST_WORK),
        "updates": InstanceOf(Sequence),
        "aggregate": Free(),
        "merge": Free(),
        "trained": Free(),
        "server_step": Free(),
        "with_state_of": Free(),
        "measure": measured,
        "deviations": Numbers(shaped("stale"), least=0),
        "probe_losses": Numbers(same_shape("client"), infinite=True, nan=True),
        "probe_samples": Numbers(same_shape("client"), least=0),
        "start_evaluation": PartOf(object, PENDING_EVALUATION, none=True),
        "evaluate_clients": OptionalOf(evaluations_of_clients),
        "flush": Free(),
        "export": OptionalOf(InstanceOf(Mapping)),
    },
)
