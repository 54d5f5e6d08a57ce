"""How models are made: of updates, taken one by one as they come, or of other models."""

from collections.abc import Callable, Iterable, Sequence

from fedsim.arrays import FloatArray, Vector
from fedsim.learning.aggregation.combining import Incoming, WeightedSum, difference_from, incoming
from fedsim.learning.aggregation.contracts import Aggregator
from fedsim.learning.lineage.faults import of_model, of_training
from fedsim.learning.lineage.handles import Cohort, Combined, ModelHandle, Node, Sent, Training
from fedsim.learning.server_optimizers.contracts import ServerOptimizer


class Aggregation:
    """A model and weighted updates, which are taken in their order and let go of as soon as they are.

    So no more updates of a cohort are in memory than have come before their turn, unless the aggregator needs all.
    """

    def __init__(
        self,
        aggregator: Aggregator,
        optimizer: ServerOptimizer,
        parameters: int,
        current: ModelHandle,
        updates: Sequence[Training],
        weights: FloatArray,
        sent: Sent,
        *,
        moved: bool,
        sum_of: Callable[[ServerOptimizer, Vector], Incoming] | None = None,
        noise: Callable[[], FloatArray] | None = None,
    ) -> None:
        self._aggregator, self._optimizer = aggregator, optimizer
        self._parameters, self._current = parameters, current
        self._cohort = updates if isinstance(updates, Cohort) and not updates.opened else None
        self._updates: Sequence[Training] = list(updates) if self._cohort is None else self._cohort
        self._weights, self._sent, self._moved = weights.tolist(), sent, moved
        self._sum_of, self._noise = sum_of, noise
        self._taken: Incoming | None = None
        self._added = 0
        if self._cohort is not None:
            self._cohort.waiting += 1
        else:
            for update in updates:
                update.waiting += 1

    def cohort(self) -> Cohort | None:
        """Return the updates, if they all start from the model, and nothing else is asked of them."""
        cohort = self._cohort
        if cohort is None or cohort.opened or cohort.waiting > 1 or cohort.base is not self._current:
            return None
        return cohort if self._taken is None else None

    def add(self, differences: Iterable[Vector]) -> None:
        taken = self._begin(self._current.vector)
        for difference, weight in zip(differences, self._weights, strict=True):
            taken.add(difference, weight)
            self._added += 1
        if self._cohort is not None:
            self._cohort.waiting -= 1

    def parents(self) -> Sequence[Node]:
        return [self._current, *self._updates]

    def take(self) -> None:
        """Take the next updates that are there, up to the first that is not, as the order counts."""
        if not self._current.materialized:
            return
        current = self._current.vector
        taken = self._begin(current)
        updates, weights = self._updates, self._weights
        for place in range(self._added, len(updates)):
            update = updates[place]
            if update.difference is None:
                return
            with of_training(update):
                sent = self._sent(update)
            if self._moved:
                sent = difference_from(current, update.base.vector, sent)
            taken.add(sent, weights[place])
            self._added = place + 1
            update.taken()

    def _begin(self, current: Vector) -> Incoming:
        """Return what takes the updates, with the server's noise if it adds any."""
        if self._taken is None and self._noise is not None:
            self._taken = noised = WeightedSum(self._optimizer, current)
            noised.add_whole(self._noise())
        elif self._taken is None and self._sum_of is not None:
            self._taken = self._sum_of(self._optimizer, current)
        elif self._taken is None:
            self._taken = incoming(self._aggregator, self._optimizer, current, len(self._updates))
        return self._taken

    def combined(self) -> Combined:
        with of_model(self._current.version + 1):
            self.take()
            if self._taken is None or self._added < len(self._updates):
                raise RuntimeError("an update is to be combined, but its training has not run")
            return self._taken.stepped(self._parameters, self._current.vector, self._current.server_state)

    def forget(self) -> None:
        """Let go of the updates that have not been added."""
        if self._cohort is not None and not self._cohort.opened:
            self._cohort.waiting -= 1
            return
        for update in self._updates[self._added :]:
            update.taken()


class Combination:
    """Any other function of models and of one training."""

    def __init__(
        self, models: Sequence[ModelHandle], combine: Callable[[], Combined], training: Training | None = None
    ) -> None:
        self._models, self._combine, self._training = models, combine, training
        if training is not None:
            training.waiting += 1

    def cohort(self) -> None:
        return

    def add(self, differences: Iterable[Vector]) -> None:
        raise TypeError(f"{type(self).__name__} takes no differences")

    def parents(self) -> Sequence[Node]:
        return self._models if self._training is None else [*self._models, self._training]

    def take(self) -> None:
        return

    def combined(self) -> Combined:
        found = self._combine()
        self.forget()
        return found

    def forget(self) -> None:
        if self._training is not None:
            self._training.taken()
