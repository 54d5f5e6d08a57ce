"""What a store gives is computed again now and then: results belong to what made them, or the store is not trusted.

The first training and the first evaluation that a run finds, and a random hundredth of the others, are compared. They
wait while torch is not imported, so that a run of fedsim's own parts that finds all its results stays short.
"""

import math
import random
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import numpy as np

from fedsim.arrays import Vector
from fedsim.errors import DistrustError
from fedsim.learning.evaluation import Evaluation
from fedsim.learning.executors.contracts import SEQUENTIAL
from fedsim.learning.lineage.asked import Model, Recipe, Update, digest_of
from fedsim.learning.lineage.computed import PRINT, Computation
from fedsim.learning.store.contracts import Record, Store

SHARE: Final = 0.01
TOLERANCE: Final = 1e-3
"""Largest relative difference of losses under an executor whose bits are not those of the sequential one."""
_OF_EVALUATIONS: Final = 1e-6
_MOST_PENDING: Final = 8
_MOST_BYTES: Final = 2**26
"""Bytes of models from which trainings start that wait for their comparison."""


def trusted(basis: str, store: Store) -> str:
    """Return what is to stand for a basis: another text after each time that its results were distrusted."""
    key = digest_of("distrusted", basis)
    times = store.records([key]).get(key, {}).get("times", 0.0)
    return digest_of(basis, times) if times else basis


def distrust(basis: str, store: Store) -> None:
    """Let nothing that was made on a basis be found any more."""
    key = digest_of("distrusted", basis)
    store.put_records({key: {"times": store.records([key]).get(key, {}).get("times", 0.0) + 1}})


class Verification:
    """Compares what one run finds with what is computed again."""

    def __init__(self, computation: Computation, fingerprint: str, parts: str) -> None:
        self.verified, self._first_model = 0, True
        self._computation, self._known, self._parts = computation, computation.known, parts
        self._exact = fingerprint.startswith(SEQUENTIAL)
        self._dice = random.Random()  # noqa: S311 - it decides what is looked at, and no number
        self._first_training = self._first_evaluation = True
        self._owed = 0
        self._pending: list[Callable[[], None]] = []
        self._trainings: list[tuple[Update, Record]] = []
        """With what the store says of them: several are trained again in one batch."""
        if not self._known.alone:
            computation.verify_by(self.run_pending, self.of_models)

    def of_trainings(self, updates: Sequence[Update]) -> None:
        """Compare some of the trainings whose updates have come into use, if the store has them."""
        chosen = [update for update in updates if self._dice.random() < SHARE]
        if self._first_training:
            chosen = [*updates[:1], *chosen]
        if self._owed and updates:
            self._owed -= 1
            chosen.append(self._dice.choice(updates))
        for update in dict.fromkeys(chosen):
            if update.report is None and update.result is None:
                self._of_training(update)

    def of_evaluation(self, model: Model, found: Evaluation, again: Callable[[], Evaluation]) -> None:
        drawn = not self._known.alone and (self._first_evaluation or self._dice.random() < SHARE)
        if drawn and self._found(model):
            self._first_evaluation = False
            self._when_possible(lambda: self._compare_evaluation(model, found, again()))

    def of_models(self, found: Mapping[Model, Recipe]) -> None:
        """Compare the first model that rules of the user's own have made, and some of the others."""
        for model, recipe in found.items():
            if not self._first_model and self._dice.random() >= SHARE:
                continue
            again = self._computation.make_again(model, recipe)
            if again is not None:
                self._first_model = False
                self._compare_model(model, recipe, again)

    def _found(self, model: Model) -> bool:
        """Return whether a model has numbers; those of the store are compared as if they were wanted."""
        recipe = None if model.known else model.recipe
        if not self._known.find(model):
            return False
        if recipe is not None and self._computation.own:
            self._when_possible(lambda: self.of_models({model: recipe}))
        return True

    def run_pending(self) -> None:
        if "torch" not in sys.modules:
            return
        trainings, self._trainings = self._trainings, []
        again = self._computation.train_again([update for update, _ in trainings])
        for (update, before), now in zip(trainings, again, strict=True):
            self._compare_training(update, before, now)
        while self._pending:
            self._pending.pop()()

    def _of_training(self, update: Update) -> None:
        digest = update.work_digest
        before = self._known.records([digest]).get(digest)
        if before is None or PRINT not in before:
            return
        if not (self._known.find(update) and self._found(update.base)):
            self._owed += 1  # another one takes its turn
            return
        self._first_training = False
        waiting = self._trainings
        if len(waiting) < _MOST_PENDING:
            waiting.append((update, before))
        if len(waiting) == _MOST_PENDING or len(waiting) * update.base.vector.nbytes > _MOST_BYTES:
            self.run_pending()

    def _when_possible(self, compare: Callable[[], None]) -> None:
        if "torch" in sys.modules:
            compare()
        elif len(self._pending) < _MOST_PENDING:
            self._pending.append(compare)

    def _compare_training(self, update: Update, before: Record, now: Record) -> None:
        self.verified += 1
        if self._exact:
            same = all(_same(before[name], now[name]) for name in ("loss", "loss_rms", PRINT))
        else:
            same = math.isclose(before["loss"], now["loss"], rel_tol=TOLERANCE) or _same(before["loss"], now["loss"])
        if not same:
            what = f"the training of client {update.client} from version {update.base.version}"
            self._refuse(what, before["loss"], now["loss"])

    def _compare_model(self, model: Model, recipe: Recipe, now: Vector) -> None:
        self.verified += 1
        same = model.vector.tobytes() == now.tobytes()
        if not same and not self._exact:
            moved = np.abs(now - recipe.models[0].vector).max()
            same = bool(np.abs(now - model.vector).max() <= TOLERANCE * moved)
        if not same:
            before, after = (float(np.linalg.norm(one - recipe.models[0].vector)) for one in (model.vector, now))
            self._refuse(f"the model of version {model.version}", before, after, "step")

    def _compare_evaluation(self, model: Model, before: Evaluation, now: Evaluation) -> None:
        self.verified += 1
        tolerance = _OF_EVALUATIONS if self._exact else TOLERANCE
        pairs = [(before.loss, now.loss), *zip(before.sums, now.sums, strict=False)]
        if not all(_same(*pair) or math.isclose(*pair, rel_tol=tolerance) for pair in pairs):
            self._refuse(f"the evaluation of version {model.version}", before.loss, now.loss)

    def _refuse(self, what: str, before: float, now: float, of: str = "loss") -> None:
        self._computation.distrust()
        made_by = self._parts or "machine or release"
        raise DistrustError(
            f"store: {what} is stored with another result ({of} {before!r}) than it gives ({of} {now!r}); the store "
            f"has results of another {made_by}, or damaged ones. None is found any more: all is computed again"
        )


def _same(one: float, other: float) -> bool:
    return one == other or (math.isnan(one) and math.isnan(other))
