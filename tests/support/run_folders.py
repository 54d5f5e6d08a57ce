"""The state of a run folder, as tests read and change it."""

import errno
import json

import pytest

from fedsim import run
from fedsim.results.state import STATE, seal

LEARNING = {
    "model": {"kind": "mlp", "hidden": [8]},
    "local": {"optimizer": "sgd", "learning_rate": 0.1, "batch_size": 20},
}


def state_of(folder):
    return json.loads((folder / STATE).read_text(encoding="utf-8"))


def rewrite(folder, *dropped, **changes):
    """Change values of ``run.json``, or drop some; the checksum fits afterwards."""
    state = {name: value for name, value in {**state_of(folder), **changes}.items() if name not in dropped}
    state.pop("checksum", None)
    (folder / STATE).write_text(json.dumps({**state, "checksum": seal(state)}), encoding="utf-8")


def files_of(folder):
    """Return the content of every file that must not depend on how often the run was killed."""
    names = [path for path in folder.iterdir() if path.suffix in {".parquet", ".safetensors", ".toml"}]
    return {path.name: path.read_bytes() for path in [*names, folder / "summary.json"]}


def full(*_, **__):
    raise OSError(errno.ENOSPC, "No space left on device")


class BrokenError(Exception):
    """What an analysis of the user's may raise."""


def stopped(of, folder, after, error=None, **options):
    """Run a scenario until an error, by default an interrupt, is raised after a round."""
    error = error or KeyboardInterrupt()

    def stop(progress):
        if progress.round == after:
            raise error

    with pytest.raises(type(error)):
        run(of, folder, on_round=stop, **options)
