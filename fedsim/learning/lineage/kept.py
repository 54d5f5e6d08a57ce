"""Which numbers of a run the store is given, and which it need not keep any longer.

A model goes into the store when it was asked for, or when ten trainings have run since the last one on its line that
went there: so a run that is killed loses few trainings, and a server that makes a model of every update does not write
each one. The states of clients' optimisers go there too, where they are kept from training to training.

With a rule other than "all" what has been superseded is removed: what this run has put there, the rule does not want,
and no handle stands for any longer.
"""

import weakref
from collections import deque
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from fedsim.learning.lineage.handles import ModelHandle, StateHandle
from fedsim.learning.server_optimizers import ServerState
from fedsim.learning.store.contracts import Arrays, Store
from fedsim.learning.store.keeping import Keeping

_TRAININGS_BETWEEN: Final = 10
"""Trainings that are worth the writing of a model."""

_VECTOR: Final = "vector"
_STEPPED: Final = "stepped"
_SERVER: Final = "server."


class KeptModels:
    """Models and optimiser states in the store.

    Parameters
    ----------
    store : where they are kept
    keeping : which models stay once a newer one is there
    """

    def __init__(self, store: Store, keeping: Keeping) -> None:
        self._store, self._keeping = store, keeping
        self._handles: dict[str, weakref.ref[Any]] = {}
        self._superseded: deque[str] = deque()

    def load(self, model: ModelHandle) -> bool:
        """Give a model the numbers that are kept of it; return whether there are any.

        The arrays stay in memory, or mapped into it, as long as the model does, so that nothing is lost when the store
        lets go of them.
        """
        arrays = self._store.arrays(model.digest)
        if arrays is None:
            return False
        state: ServerState | None = None
        if _STEPPED in arrays:
            state = {name.removeprefix(_SERVER): arrays[name] for name in arrays if name.startswith(_SERVER)}
        model.load(arrays[_VECTOR], state)
        return True

    def load_state(self, state: StateHandle) -> bool:
        """Give an optimiser state the value that is kept of it; return whether there is one."""
        arrays = self._store.arrays(state.digest)
        if arrays is not None:
            state.take(arrays)
        return arrays is not None

    def put(self, model: ModelHandle, *, asked_for: bool) -> None:
        """Put a model that has been worked out into the store, if it is worth it."""
        every = self._keeping.every
        by_rule = every is not None and every > 1 and self._keeping.stays(model.version)
        if not model.unkept or not (asked_for or by_rule or model.unkept >= _TRAININGS_BETWEEN):
            return
        model.unkept = 0
        arrays = {_VECTOR: model.vector}
        if (state := model.server_state) is not None:
            arrays |= {_STEPPED: np.zeros(0, dtype=np.float32), **{_SERVER + name: state[name] for name in state}}
        self._put(model.digest, arrays, model, stays=self._keeping.stays(model.version))
        while self._superseded:
            self._store.remove_arrays(self._superseded.popleft())

    def put_state(self, state: StateHandle) -> None:
        """Put an optimiser state that a training has left into the store."""
        if state.value is not None:
            self._put(state.digest, state.value, state, stays=self._keeping.every == 1)

    def _put(self, digest: str, arrays: Arrays, handle: ModelHandle | StateHandle, *, stays: bool) -> None:
        self._store.put_arrays(digest, arrays)
        if not stays:
            self._handles[digest] = weakref.ref(handle, self._note(digest))

    def _note(self, digest: str) -> Callable[[object], None]:
        """Return what notes that no handle stands for a digest any longer; the next newer model removes it."""
        handles, superseded = self._handles, self._superseded

        def gone(_: object) -> None:
            handles.pop(digest, None)
            superseded.append(digest)

        return gone
