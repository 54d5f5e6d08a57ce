"""The models of a run in its folder, as safetensors files; nothing is imported or run on behalf of such a file."""

import json
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import safetensors
import safetensors.numpy
from numpy.typing import NDArray
from pydantic import ValidationError
from pydantic_core import PydanticCustomError

from fedsim.errors import RunError
from fedsim.history import History
from fedsim.learning.data.shapes import Shape, TokenShape, TypedShape
from fedsim.learning.models.settings import MODELS, Architecture, ModelPart
from fedsim.learning.models.trained import TrainedModel
from fedsim.results.manifest import MODEL, MODELS as ROUNDS, checked_bytes
from fedsim.results.places import located
from fedsim.results.state import read_state
from fedsim.whole_files import not_written, replace_file

if TYPE_CHECKING:
    from fedsim.learning.models.trained import Module

_METADATA: Final = "fedsim"
"""One entry, because several have no order."""


def model_of_round(number: int) -> str:
    return f"{ROUNDS}/round-{number:06d}.safetensors"


def write_model(path: Path, arrays: Mapping[str, NDArray[Any]], architecture: Architecture, number: int) -> None:
    about = {
        "model": MODELS.describe(architecture.model),
        "shape": _written(architecture.shape),
        "classes": architecture.classes,
        "round": number,
    }
    content = safetensors.numpy.save(dict(arrays), {_METADATA: json.dumps(about, default=repr)})
    try:
        path.parent.mkdir(exist_ok=True)
    except OSError as error:
        raise not_written(path.parent, error) from None
    replace_file(path, lambda part: part.write_bytes(content))


def load_model(
    run: str | Path | History, model: ModelPart | str | None = None, *, after_round: int | None = None
) -> "Module":
    """Return a model of a run as a ``torch.nn.Module`` in evaluation mode.

    The architecture follows from the settings in the file if the kind is one of fedsim's, or of an installed package
    that registers it. A class of your own is imported only if you name it here.

    Parameters
    ----------
    run : folder, or history
    model : ``"module:Class"``, which gets the options in the file, or the settings of the model
    after_round : number of the round whose model is wanted, if the run saved it; the final one by default

    Raises
    ------
    RunError
        If the run has no such model, or it cannot be built again.

    Examples
    --------
    >>> from fedsim import Scenario, run
    >>> scenario = Scenario.load("scenarios/quickstart.toml").replace({"rounds.count": 1})
    >>> history = run(scenario, "runs/one", store=False, executor="sequential")
    >>> type(load_model("runs/one")).__name__
    'Sequential'
    """
    if isinstance(run, History):
        return run.model(model, after_round=after_round)
    return read_model(Path(run), model, after_round).module()


def with_model(history: History, folder: Path) -> History:
    return replace(history, find_model=partial(read_model, folder))


def read_model(folder: Path, model: ModelPart | str | None = None, after_round: int | None = None) -> TrainedModel:
    name = MODEL if after_round is None else model_of_round(after_round)
    path = located(folder, name)
    if not path.exists():
        raise RunError(_missing(folder, after_round))
    try:
        checked_bytes(path, name, read_state(folder))
        with safetensors.safe_open(path, "numpy") as opened:
            about = json.loads((opened.metadata() or {})[_METADATA])
            arrays = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118 (it is no mapping)
        table, shape, classes = dict(about["model"]), _shape(about["shape"]), int(about["classes"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError, safetensors.SafetensorError) as error:
        raise RunError(f"{path}: cannot be read as a model of a run: {error!r}") from None
    if not shape or min(shape) < 1:
        raise RunError(f"{path}: cannot be read as a model of a run: samples of the shape {shape}")
    return TrainedModel(Architecture(_part(path, table, model), shape, classes), arrays)


def _written(shape: Shape) -> object:
    """Return the shape of a sample as plain values: a table for a text, and for numbers that are not of float32."""
    if isinstance(shape, TypedShape):
        return {"sizes": list(shape), "dtype": shape.dtype}
    return {**shape._asdict(), "padding": shape.padding} if isinstance(shape, TokenShape) else shape


def _shape(written: list[int] | dict[str, Any]) -> Shape:
    if isinstance(written, dict):
        return TypedShape(**written) if "sizes" in written else TokenShape(**written)
    return tuple(map(int, written))


def _part(path: Path, table: dict[str, Any], model: ModelPart | str | None) -> ModelPart:
    """Return the settings of a model: the caller's, or those in the file if their kind is known."""
    if model is not None and not isinstance(model, str):
        known: ModelPart = MODELS.make(model)
        return known
    kind = table.get("kind")
    if model is None and kind not in MODELS.kinds():
        raise RunError(
            f"{path}: its model {kind!r} is not one of fedsim's or of an installed package; name it, as "
            f"load_model(run, model={kind!r}), if you trust the code that it stands for"
        )
    try:
        found: ModelPart = MODELS.make({**table, "kind": model or kind})
    except (PydanticCustomError, ValidationError) as error:
        raise RunError(f"{path}: its model cannot be built again: {error}") from None
    return found


def _missing(folder: Path, after_round: int | None) -> str:
    state = read_state(folder)
    kept = sorted(int(path.stem.removeprefix("round-")) for path in (folder / ROUNDS).glob("round-*.safetensors"))
    rounds = f"; there are models after the rounds {', '.join(map(str, kept))}" if kept else ""
    if after_round is not None:
        return f"{folder}: holds no model after round {after_round}{rounds}"
    if state.status == "finished":
        return f"{folder}: holds no model: the run was about timing only{rounds}"
    return f"{folder}: holds no final model, because the run is not finished{rounds}"
