"""The folder where fedsim keeps what other runs on this machine can use again."""

import os
from pathlib import Path
from typing import Final

ENVIRONMENT_VARIABLE: Final = "FEDSIM_CACHE"
"""Names another folder."""


def user_cache() -> Path:
    """Return the folder: ``FEDSIM_CACHE``, else ``~/.cache/fedsim``. It need not exist."""
    return Path(os.environ.get(ENVIRONMENT_VARIABLE) or "~/.cache/fedsim").expanduser()
