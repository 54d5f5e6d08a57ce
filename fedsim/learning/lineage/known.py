"""What is known: results in memory, then in the store, which takes at most a fiftieth of the run's time.

Records wait together, and are found while they wait. A model is put when the store is due for one, with all that a run
goes on from: the newest states of clients, where these last from training to training, and the models that stale
updates start from, unless they are large. So a killed run loses the work of two seconds at most, beside the present
one. A model that is exported, as a run's last one is, is put at once.

With a rule other than "all" a model that this run has put there is removed once no reference to it is left and the rule
does not want it.
"""

import re
import time
import weakref
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Self

import numpy as np

from fedsim.errors import FedsimError
from fedsim.learning.lineage.asked import Model, Node, State, Update
from fedsim.learning.server_optimizers.contracts import ServerState
from fedsim.learning.store.contracts import Arrays, NoStore, Record, Store

_EVERY: Final = re.compile(r"every +([1-9][0-9]*)")


@dataclass(frozen=True)
class Keeping:
    """Which models of a run stay in the store once a newer one is there; the newest stays always."""

    every: int | None = 1

    def __post_init__(self) -> None:
        if self.every is not None and self.every < 1:
            raise FedsimError(f"keep-models: every {self.every!r} is not allowed; the number must be at least 1")

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the rule that a text names: ``all``, ``last`` or ``every N``."""
        if text == "all":
            return cls(1)
        if text == "last":
            return cls(None)
        if (found := _EVERY.fullmatch(text)) is None:
            raise FedsimError(
                f"keep-models: {text!r} is not allowed; it must be all, last or every N, such as 'every 10'"
            )
        return cls(int(found[1]))

    def __str__(self) -> str:
        return {None: "last", 1: "all"}.get(self.every, f"every {self.every}")

    def stays(self, version: int) -> bool:
        return self.every is not None and version % self.every == 0


_SHARE_OF_TIME: Final = 0.02
_LONGEST_S: Final = 2.0
"""How long anything waits at most, whatever share of the time that takes."""

_MOST_BYTES: Final = 2**24
"""Most bytes of models that are put beside one, for the stale updates that start from them."""

_VECTOR: Final = "vector"
_STEPPED: Final = "stepped"
_SERVER: Final = "server."


class Known:
    def __init__(self, store: Store, keeping: Keeping) -> None:
        self._store, self._keeping = store, keeping
        # Records stay where they wait then, and no model is ever asked for.
        self.alone: Final = isinstance(store, NoStore)
        self._records: dict[str, Record] = {}
        self._states: dict[int, State] = {}
        self._records_due, self._arrays_due = _Turn(), _Turn()
        self._unwanted: deque[str] = deque()
        self._unstored: weakref.WeakSet[Model] = weakref.WeakSet()
        """Computed models to which a reference is left, such as that of a stale update."""

    def records(self, digests: Sequence[str]) -> dict[str, Record]:
        waiting = {digest: self._records[digest] for digest in digests if digest in self._records}
        if self.alone or len(waiting) == len(digests):
            return waiting
        return self._store.records([digest for digest in digests if digest not in waiting]) | waiting

    def put_records(self, records: Mapping[str, Record]) -> None:
        self._records.update(records)
        if not self.alone and self._records_due.come:
            self.flush()

    def flush(self) -> None:
        if self._records and not self.alone:
            with self._records_due:
                self._store.put_records(self._records)
            self._records = {}

    def find(self, node: Node) -> bool:
        """Give a model its stored numbers, or an update what its client remembers before; return whether it has them.

        Arrays stay in memory as long as what they belong to, so that nothing is lost when the store lets go of them.
        """
        if isinstance(node, Update):
            return node.before is None or self.find_state(node.before)
        if node.known:
            return True
        arrays = self.arrays(node.digest)
        if arrays is None:
            return False
        state: ServerState | None = None
        if _STEPPED in arrays:
            state = {name.removeprefix(_SERVER): arrays[name] for name in arrays if name.startswith(_SERVER)}
        node.take(arrays[_VECTOR], state)
        return True

    def find_state(self, state: State) -> bool:
        if state.value is None and (arrays := self.arrays(state.digest)) is not None:
            state.take(arrays)
        return state.value is not None

    def put_if_due(self, model: Model) -> None:
        every = self._keeping.every
        if self.alone:
            return
        self._unstored.add(model)
        if self._arrays_due.come or (every is not None and every > 1 and self._keeping.stays(model.version)):
            self.put(model)

    def put(self, model: Model) -> None:
        """Put a model into the store, and what else a run goes on from that is newer than the last model there."""
        states, self._states = self._states, {}
        self._unstored.discard(model)
        beside, self._unstored = [*self._unstored], weakref.WeakSet()
        if len(beside) * model.vector.nbytes > _MOST_BYTES:
            beside = []
        with self._arrays_due:
            for each in states.values():
                if each.value is not None:
                    self._put(each.digest, each.value, each, stays=self._keeping.every == 1)
            for one in (*beside, model):
                self._put(one.digest, _arrays_of(one), one, stays=self._keeping.stays(one.version))
            while self._unwanted:
                self._store.remove_arrays(self._unwanted.popleft())

    def note_state(self, client: int, state: State) -> None:
        if not self.alone:
            self._states[client] = state

    def arrays(self, digest: str) -> Arrays | None:
        return None if self.alone else self._store.arrays(digest)

    def put_arrays(self, digest: str, arrays: Arrays) -> None:
        self._store.put_arrays(digest, arrays)

    def _put(self, digest: str, arrays: Arrays, owner: Model | State, *, stays: bool) -> None:
        self._store.put_arrays(digest, arrays)
        if not stays:  # removed with the first model that is put after its end
            weakref.finalize(owner, self._unwanted.append, digest).atexit = False


def _arrays_of(model: Model) -> Arrays:
    state = model.server_state
    if state is None:
        return {_VECTOR: model.vector}
    stepped = {_SERVER + name: values for name, values in state.items()}
    return {_VECTOR: model.vector, _STEPPED: np.zeros(0, dtype=np.float32), **stepped}


class _Turn:
    """When a store may be written again, so that writing takes a small share of the time."""

    def __init__(self) -> None:
        self._began = self._due = time.perf_counter()

    @property
    def come(self) -> bool:
        return time.perf_counter() >= self._due

    def __enter__(self) -> None:
        self._began = time.perf_counter()

    def __exit__(self, *_: object) -> None:
        now = time.perf_counter()
        self._due = now + min((now - self._began) / _SHARE_OF_TIME, _LONGEST_S)
