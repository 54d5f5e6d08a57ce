"""The contract check of server optimisers."""

import copy
from collections.abc import Mapping

import numpy as np

from fedsim.arrays import Vector
from fedsim.errors import ContractError
from fedsim.learning import ServerOptimizer, ServerState
from fedsim.testing.trials import global_random_state, locked


def check_server_optimizer(optimizer: ServerOptimizer, *, parameters: int = 40, steps: int = 20, seed: int = 0) -> None:
    """Check that a server optimiser keeps the contract of `fedsim.learning.ServerOptimizer`; return None if it does.

    It goes through some steps with random updates, with updates of zero and with a model of one parameter. It must

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
    """
    if parameters < 2 or steps < 2:
        raise ValueError(f"parameters and steps: {parameters!r} and {steps!r} are not allowed; both must be at least 2")
    name = type(optimizer).__name__
    if not isinstance(optimizer, ServerOptimizer):
        raise ContractError(f"{name} does not derive from fedsim.learning.ServerOptimizer")
    if not isinstance(optimizer.adds_update, bool):
        raise ContractError(f"{name}.adds_update: {optimizer.adds_update!r} is not allowed; it must be True or False")
    for title, size, scale in (
        ("random updates", parameters, 0.1),
        ("updates of zero", parameters, 0.0),
        ("a model of one parameter", 1, 0.1),
    ):
        rng = np.random.default_rng([seed, size])
        model = rng.standard_normal(size).astype(np.float32)
        updates = [(scale * rng.standard_normal(size)).astype(np.float32) for _ in range(steps)]
        _Trial(optimizer, title, model, updates).check()


class _Trial:
    """One model and the updates that come to it."""

    def __init__(self, optimizer: ServerOptimizer, title: str, model: Vector, updates: list[Vector]) -> None:
        self.optimizer, self.title, self.model, self.updates = optimizer, title, model, updates
        self.name = type(optimizer).__name__

    def check(self) -> None:
        """Take all steps, and then again as they must repeat."""
        start = self._init(self.optimizer)
        kept = self._walk(self.optimizer, start)
        self._compare(self._walk(self.optimizer, self._init(self.optimizer)), kept, "differ when they are repeated")
        twin = copy.deepcopy(self.optimizer)
        self._compare(self._walk(twin, self._init(twin)), kept, "differ in a copy of the optimiser")
        for number in reversed(range(1, len(kept))):
            model, state = kept[number - 1]
            again = self._step(self.optimizer, number, model, state)
            self._compare([again], kept[number : number + 1], "depend on what was asked in between", number)

    def _walk(self, optimizer: ServerOptimizer, state: ServerState) -> list[tuple[Vector, ServerState]]:
        """Return what each step gave, as it was then."""
        model = self.model
        found, kept = [], []
        for number in range(len(self.updates)):
            found.append(self._step(optimizer, number, model, state))
            kept.append(copy.deepcopy(found[-1]))
            model, state = kept[-1]
        self._compare(found, kept, "were changed after they had been returned")
        return kept

    def _init(self, optimizer: ServerOptimizer) -> ServerState:
        try:
            state: object = optimizer.init(self.model.size)
        except Exception as error:
            raise self._error("init", f"failed with {type(error).__name__}: {error}") from error
        return self._checked(state, "init", None)

    def _step(
        self, optimizer: ServerOptimizer, number: int, model: Vector, state: ServerState
    ) -> tuple[Vector, ServerState]:
        update, before = self.updates[number], global_random_state()
        try:
            answer: object = optimizer.step(locked(model), locked(update), locked(dict(state)))
        except Exception as error:
            hint = "; model, update and state are read-only" if "read-only" in str(error) else ""
            raise self._error("step", f"failed with {type(error).__name__}: {error}{hint}", number) from error
        if global_random_state() != before:
            raise self._error("step", "drew from a global random generator; a step draws no random numbers", number)
        if not (isinstance(answer, tuple) and len(answer) == 2):
            raise self._error("step", f"returned {type(answer).__name__}; a pair of parameters and state", number)
        found, after = answer
        if not isinstance(found, np.ndarray) or found.shape != model.shape:
            raise self._error("step", f"returned parameters of shape {np.shape(found)}; {model.shape}", number)
        if not np.all(np.isfinite(found)):
            raise self._error("step", "returned parameters that are not finite; all of them", number)
        kept = self._checked(after, "step", number)
        if self._shapes(kept) != self._shapes(state):
            fault = f"returned a state of {self._shapes(kept)}; that of init, {self._shapes(state)},"
            raise self._error("step", fault, number)
        if optimizer.adds_update:
            wanted = (model.astype(np.float64) + update).astype(np.float32)
            if kept or not np.allclose(found, wanted, rtol=1e-6, atol=1e-6):
                fault = "with adds_update = True returned something else; model + update and no state"
                raise self._error("step", fault, number)
        return found, kept

    def _checked(self, state: object, method: str, number: int | None) -> ServerState:
        if not isinstance(state, Mapping) or not all(
            isinstance(name, str) and isinstance(values, np.ndarray | np.generic) for name, values in state.items()
        ):
            raise self._error(method, f"returned the state {state!r}; a mapping of names to arrays", number)
        return state

    def _shapes(self, state: ServerState) -> dict[str, tuple[int, ...]]:
        return {name: values.shape for name, values in sorted(state.items())}

    def _compare(
        self,
        found: list[tuple[Vector, ServerState]],
        wanted: list[tuple[Vector, ServerState]],
        fault: str,
        first: int = 0,
    ) -> None:
        for number, ((model, state), (other, kept)) in enumerate(zip(found, wanted, strict=True), start=first):
            same = np.array_equal(model, other) and all(np.array_equal(state[name], kept[name]) for name in kept)
            if not same:
                raise ContractError(f"{self.name}.step: parameters or state {fault}{self._at(number)}")

    def _error(self, method: str, fault: str, number: int | None = None) -> ContractError:
        needed = "" if "failed" in fault or "drew" in fault else " is needed"
        return ContractError(f"{self.name}.{method} {fault}{needed}{self._at(number)}")

    def _at(self, number: int | None) -> str:
        return f" (in the trial with {self.title}{'' if number is None else f', step {number + 1}'})"
