"""The folder of what other runs on this machine can use again."""

import os
from pathlib import Path
from typing import Final

from fedsim.errors import StoreError
from fedsim.inputs.files import expanded

ENVIRONMENT_VARIABLE: Final = "FEDSIM_CACHE"
"""Names another folder."""


def user_cache() -> Path:
    """Return the folder: ``FEDSIM_CACHE``, else ``fedsim`` in ``XDG_CACHE_HOME`` or ``~/.cache``; it need not exist."""
    named = os.environ.get(ENVIRONMENT_VARIABLE)
    if named:
        return expanded(named, StoreError)
    of_user = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if of_user.is_absolute():  # the specification ignores others
        return of_user / "fedsim"
    try:
        return Path("~/.cache/fedsim").expanduser()
    except RuntimeError:
        raise StoreError(
            f"there is no home folder (HOME is not set); name a folder in {ENVIRONMENT_VARIABLE}"
        ) from None
