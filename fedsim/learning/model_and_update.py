"""Handles of models and of updates, and how an update is made private."""

from dataclasses import dataclass
from typing import Protocol


class Model(Protocol):
    """A server's model: the digest of its lineage, and its version."""

    @property
    def digest(self) -> str:
        """Hash of everything that determines the numbers."""
        ...

    @property
    def version(self) -> int:
        """Number of aggregations that led to it, from 0."""
        ...


class Update(Protocol):
    """What one client sends: the difference between its trained model and the model it started from."""

    @property
    def digest(self) -> str:
        """Hash of everything that determines the numbers."""
        ...


@dataclass(frozen=True)
class Release:
    """How an update is made private before it is sent."""

    epsilon: float
    index: int
