"""The folder of what other runs on this machine can use again."""

import os
from pathlib import Path
from typing import Final

from fedsim.errors import StoreError
from fedsim.inputs.files import expanded

ENVIRONMENT_VARIABLE: Final = "FEDSIM_CACHE"
"""Names another folder."""


def user_cache() -> Path:
    """Return the folder: ``FEDSIM_CACHE``, else ``~/.cache/fedsim``. It need not exist."""
    named = os.environ.get(ENVIRONMENT_VARIABLE)
    if named:
        return expanded(named, StoreError)
    try:
        return Path("~/.cache/fedsim").expanduser()
    except RuntimeError:
        raise StoreError(
            f"there is no home folder (HOME is not set); name a folder in {ENVIRONMENT_VARIABLE}"
        ) from None
