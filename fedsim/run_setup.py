"""What a part of a scenario may read of the run that it is built for."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, Self

import numpy as np

from fedsim.arrays import FloatArray
from fedsim.streams import Streams

NOWHERE: Final = np.zeros((0, 2))


@dataclass(frozen=True, eq=False)
class RunSetup:
    """The argument ``run`` of every ``build(run)``.

    Attributes
    ----------
    clients : K
    streams : random streams of the run, by name and keys: ``run.streams.generator(name, *keys)`` is one, and
        ``run.streams.uniform(name, ids)`` a number of each; the seed is ``run.streams.seed``
    positions_m : positions of the clients in metres, the base station at the origin, shape (K, 2); none for a learner,
        which is built first
    flops_per_sample : floating-point operations to train on one sample; None where no learner counts them

    Examples
    --------
    >>> from fedsim.run_setup import RunSetup
    >>> run = RunSetup(3, Streams(0))
    >>> run.clients, run.streams.seed, RunSetup.at(np.zeros((2, 2)), Streams(1)).clients
    (3, 0, 2)
    """

    clients: int
    streams: Streams
    positions_m: FloatArray = field(default_factory=lambda: NOWHERE)
    flops_per_sample: float | None = None

    @classmethod
    def at(cls, positions_m: FloatArray, streams: Streams) -> Self:
        """Return the setup of a crowd at places in metres, shape (K, 2)."""
        return cls(len(positions_m), streams, positions_m)


def other_build(part: object) -> str:
    """Return the ``build`` of a part or a class if it takes anything but a run; empty if it does not."""
    kind: Any = part if isinstance(part, type) else type(part)
    build: Callable[..., Any] | None = inspect.getattr_static(kind, "build", None)
    if not inspect.isfunction(build):
        return ""
    _, *named = inspect.signature(build).parameters.values()
    needed = [one.name for one in named if one.default is one.empty and one.kind is not one.VAR_KEYWORD]
    if needed == ["run"] or (named and named[0].kind is named[0].VAR_POSITIONAL):
        return ""
    return (
        f"it has build({', '.join(one.name for one in named)}); allowed: build(self, run), which reads run.clients, "
        "run.streams, run.positions_m and run.flops_per_sample (fedsim.run_setup.RunSetup)"
    )
