"""Sionna where it is used, and advice where it is not installed."""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Final

ADVICE: Final = "pip install 'fedsim-des[sionna]'"
_SEED: Final = 38901
"""Of Sionna's draws, which are part of a law, and the same in every run."""


def require_sionna(kind: str) -> None:
    if find_spec("sionna") is None:
        raise ValueError(f"kind = {kind!r} needs the library sionna, which is not installed: {ADVICE}")


def part_of_sionna(module: str, name: str) -> Any:
    return getattr(import_module(f"sionna.{module}"), name)


@contextmanager
def own_draws() -> Iterator[None]:
    """Let Sionna draw the same numbers each time, and go on afterwards as if it had not drawn."""
    generator = part_of_sionna("phy", "config").torch_rng("cpu")
    before = generator.get_state()
    generator.manual_seed(_SEED)
    try:
        yield
    finally:
        generator.set_state(before)
