"""`check_server_optimizer` refuses broken optimisers, each for its own fault, and passes sound ones."""
# ruff: noqa: ARG005 (an optimiser takes what the contract gives)

from typing import Any, ClassVar

import numpy as np
from pydantic import PrivateAttr

from fedsim.learning import FedAvg, FedAvgM, ServerOptimizer
from fedsim.testing import check_server_optimizer
from tests.support.checks import passes, refuses
from tests.support.lies import lying, stating


class Adaptive(ServerOptimizer):
    """Adam on the update, with a count of its steps; the broken ones differ from it in one thing each."""

    def init(self, parameters):
        return {"mean": np.zeros(parameters), "square": np.zeros(parameters), "count": np.zeros(())}

    def step(self, model, update, state):
        count = state["count"] + 1
        mean, square = 0.9 * state["mean"] + 0.1 * update, 0.99 * state["square"] + 0.01 * update**2
        step = 0.1 * (mean / (1 - 0.9**count)) / (np.sqrt(square / (1 - 0.99**count)) + 1e-3)
        return (model + step).astype(np.float32), {"mean": mean, "square": square, "count": count}


def stepping(answer):
    """Return an optimiser whose step is a function of model, update and state."""
    return lying(Adaptive, "step", lambda self, *given: answer(*given))()


def divides_by_zero(model, update, state):
    with np.errstate(all="ignore"):
        return (model + update / np.abs(update)).astype(np.float32), state


class RemembersItself(Adaptive):
    _steps: int = PrivateAttr(0)

    def step(self, model, update, state):
        self._steps += 1
        return model + np.float32(0.9**self._steps) * update, state


class WritesOnWhatItReturned(Adaptive):
    kept: ClassVar[Any] = {}

    def step(self, model, update, state):
        mean = self.kept.setdefault(model.size, np.zeros(model.size))
        mean[:] = state["mean"] + update
        return model + update, {**state, "mean": mean}


test_sound_optimizers_pass = passes(
    check_server_optimizer, [FedAvg(), FedAvgM(), FedAvgM(momentum=0.5, learning_rate=0.1), Adaptive()]
)
test_broken_optimizers_are_refused_for_their_fault = refuses(
    check_server_optimizer,
    [
        (stepping(divides_by_zero), r"not finite.*updates of zero"),
        (RemembersItself(), "differ when they are repeated"),
        (stepping(lambda m, u, s: (np.add(m, u, out=m), s)), "read-only"),
        (stepping(lambda m, u, s: (m + np.add(s["mean"], u, out=s["mean"]), s)), "read-only"),
        (WritesOnWhatItReturned(), "were changed after they had been returned"),
        (stepping(lambda m, u, s: (m + u, {**s, f"update {len(s)}": u})), "returned a state of"),
        (stepping(lambda m, u, s: (m + np.float32(np.random.rand()) * u, s)), "global random generator"),  # noqa: NPY002
        (stepping(lambda m, u, s: m + u), "returned ndarray; a pair of parameters and state is needed"),
        (stepping(lambda m, u, s: ((m + u)[:-1], s)), r"parameters of shape \(39,\); \(40,\) is needed"),
        (
            lying(Adaptive, "init", lambda self, parameters: {"count": 0})(),
            "init returned the state .* a mapping of names to arrays is needed",
        ),
        (stating(FedAvgM, adds_update=True)(), "with adds_update = True"),
        (stating(FedAvg, adds_update="yes")(), "adds_update: 'yes' is not allowed"),
        (object(), "does not derive"),
    ],
)
