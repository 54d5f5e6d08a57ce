"""The contract check of server optimisers."""

import copy
from collections.abc import Mapping

import numpy as np

from fedsim.arrays import Vector
from fedsim.learning import ServerOptimizer, ServerState
from fedsim.testing.examination import Examination, alike, at_least_two


def check_server_optimizer(optimizer: ServerOptimizer, *, parameters: int = 40, steps: int = 20, seed: int = 0) -> None:
    """Check that a server optimiser keeps the contract of `fedsim.learning.ServerOptimizer`; return None if it does.

    It goes through some steps with random updates, also large and tiny ones, with updates of zero and with a model of
    one parameter. It must

    * be a `ServerOptimizer` whose ``adds_update`` is True or False,
    * return with ``init`` a mapping of names to arrays, the same each time,
    * return with ``step`` the next parameters, of the shape of the model and finite, and a state with the names and
      shapes of the one before,
    * return the same again for the same arguments, whatever it was asked in between, and as a copy of itself: it keeps
      nothing outside the state, and draws no random numbers,
    * leave model, update and state alone (they are read-only), and not write later on what it has returned,
    * with ``adds_update`` keep no state and return the model plus the update.

    Parameters
    ----------
    optimizer : with its options
    parameters : size of the usual model, at least 2
    steps : steps of each trial, at least 2
    seed : of models and updates, >= 0

    Raises
    ------
    ContractError
        Naming the optimiser, the fault, the trial and the step.
    ValueError
        If ``parameters`` or ``steps`` is too small to check anything.

    Examples
    --------
    >>> from fedsim.learning import FedAdam
    >>> check_server_optimizer(FedAdam())
    """
    at_least_two(parameters=parameters, steps=steps)
    part = Examination(optimizer)
    part.derives(optimizer, ServerOptimizer, "step", "adds_update")
    for title, size, scale in (
        ("random updates", parameters, 0.1),
        ("updates of zero", parameters, 0.0),
        ("large updates", parameters, 1e6),
        ("tiny updates", parameters, 1e-12),
        ("a model of one parameter", 1, 0.1),
    ):
        rng = np.random.default_rng([seed, size])
        model = rng.standard_normal(size).astype(np.float32)
        updates = [(scale * rng.standard_normal(size)).astype(np.float32) for _ in range(steps)]
        _Trial(optimizer, title, model, updates).check()


class _Trial(Examination):
    read_only = "model, update and state are read-only"

    def __init__(self, optimizer: ServerOptimizer, title: str, model: Vector, updates: list[Vector]) -> None:
        super().__init__(optimizer)
        self.optimizer, self.title, self.model, self.updates = optimizer, title, model, updates

    def check(self) -> None:
        kept = self._walk(self.optimizer)
        self._compare(self._walk(self.optimizer), kept, "differ when they are repeated")
        self._compare(self._walk(copy.deepcopy(self.optimizer)), kept, "differ in a copy of the optimiser")
        for number in reversed(range(1, len(kept))):
            again = self._step(self.optimizer, number, *kept[number - 1])
            self._compare([again], kept[number : number + 1], "depend on what was asked in between")

    def _walk(self, optimizer: ServerOptimizer) -> list[tuple[Vector, ServerState]]:
        self.place = f"in the trial with {self.title}"
        model, state = self.model, self._checked("init", self.ask("init", optimizer.init, self.model.size))
        found, kept = [], []
        for number in range(len(self.updates)):
            found.append(self._step(optimizer, number, model, state))
            kept.append(copy.deepcopy(found[-1]))
            model, state = kept[-1]
        self._compare(found, kept, "were changed after they had been returned")
        return kept

    def _step(
        self, optimizer: ServerOptimizer, number: int, model: Vector, state: ServerState
    ) -> tuple[Vector, ServerState]:
        self.place, update = f"in the trial with {self.title}, step {number + 1}", self.updates[number]
        answer: object = self.ask("step", optimizer.step, model, update, state)
        if not (isinstance(answer, tuple) and len(answer) == 2):
            raise self.fault(f"step returned {type(answer).__name__}; a pair of parameters and state is needed")
        found, after = answer
        if not isinstance(found, np.ndarray) or found.shape != model.shape:
            raise self.fault(f"step returned parameters of shape {np.shape(found)}; {model.shape} is needed")
        self.law(np.all(np.isfinite(found)), "step returned parameters that are not finite")
        kept = self._checked("step", after)
        shapes, wanted = ({name: np.shape(each[name]) for name in sorted(each)} for each in (kept, state))
        self.law(shapes == wanted, f"step returned a state of {shapes}; that of init, {wanted}, is needed")
        if optimizer.adds_update:
            total = (model.astype(np.float64) + update).astype(np.float32)
            added = not kept and np.allclose(found, total, rtol=1e-6, atol=1e-6)
            self.law(added, "step with adds_update = True must return model + update and no state")
        return found, kept

    def _checked(self, method: str, state: object) -> ServerState:
        if not isinstance(state, Mapping) or not all(
            isinstance(name, str) and isinstance(values, np.ndarray | np.generic) for name, values in state.items()
        ):
            raise self.fault(f"{method} returned the state {state!r}; a mapping of names to arrays is needed")
        return state

    def _compare(
        self, found: list[tuple[Vector, ServerState]], wanted: list[tuple[Vector, ServerState]], fault: str
    ) -> None:
        self.law(alike(found, wanted), f"step: parameters or state {fault}")
