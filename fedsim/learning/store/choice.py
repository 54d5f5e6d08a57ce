"""Which store a run uses, and how large: named by the caller or the environment, never by the scenario."""

import os
import warnings
from pathlib import Path
from typing import Final

from pydantic import ByteSize, TypeAdapter, ValidationError

from fedsim.errors import FedsimError, StoreError, StoreWarning
from fedsim.inputs.files import expanded
from fedsim.learning.store.contracts import NoStore, Store
from fedsim.learning.store.disk import DEFAULT_LIMIT_BYTES, DiskStore
from fedsim.user_cache import user_cache

STORE_VARIABLE: Final = "FEDSIM_STORE"
"""Names the folder of the store of runs that name none themselves, or ``none``."""
LIMIT_VARIABLE: Final = "FEDSIM_STORE_LIMIT"
"""Names the most room of arrays in a store on disk."""
NO_STORE: Final = "none"

StoreChoice = Store | str | Path | bool | None
"""A store; the folder of one; False or ``"none"`` for none beyond the run; True or None for that of the environment."""

_SIZE: Final = TypeAdapter(ByteSize)
_opened: Final[dict[Path, DiskStore]] = {}


def open_store(store: StoreChoice = None) -> Store:
    asked = (os.environ.get(STORE_VARIABLE) or None) if store is None or store is True else store
    if asked is False or asked == NO_STORE:
        return NoStore()
    if isinstance(asked, str | Path):
        return open_folder(expanded(asked, StoreError))
    if asked is not None:
        return asked
    try:
        return open_folder(user_cache() / "store")
    except StoreError as error:
        said = f"{error}. Results are kept as long as the run lasts; name another folder in {STORE_VARIABLE}"
        warnings.warn(said, StoreWarning, stacklevel=2)
        return NoStore()


def default_folder() -> Path | None:
    """Return the folder of the environment's store, or None if it names ``none``."""
    named = os.environ.get(STORE_VARIABLE)
    if named == NO_STORE:
        return None
    return expanded(named, StoreError) if named else user_cache() / "store"


def open_folder(folder: Path) -> DiskStore:
    """Return the one store of a folder in this process, whose models may take FEDSIM_STORE_LIMIT, or 5 GiB."""
    text, place = os.environ.get(LIMIT_VARIABLE), folder.absolute()
    limit_bytes = parse_size(text, LIMIT_VARIABLE) if text else DEFAULT_LIMIT_BYTES
    store = _opened.get(place) or _opened.setdefault(place, DiskStore(place))
    store.limit_bytes = limit_bytes
    return store


def parse_size(text: str, field: str) -> int:
    """Return the bytes of a size such as ``5 GiB``, ``500 MB`` or ``0 B``."""
    try:
        if text.strip()[-1:].isalpha() and len(text.split()) <= 2:
            return int(_SIZE.validate_python(text.strip()))
    except ValidationError:
        pass
    raise FedsimError(f"{field}: {text!r} is not allowed; it must be a number and a unit, such as '5 GiB' or '500 MB'")


def show_size(size_bytes: int) -> str:
    return ByteSize(size_bytes).human_readable(separator=" ")
