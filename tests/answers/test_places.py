"""Where a part has failed: the user's own line, also where a library raised; and how long its message may be."""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

from fedsim import simulate
from fedsim.answers import asked
from fedsim.errors import PartError
from tests.support.short_runs import of_learning


def fault_of(call: Any, *arguments: Any) -> PartError:
    with pytest.raises(PartError) as failed:
        asked("Mine", "factor", call, *arguments)
    return failed.value


def of_torch() -> Any:
    return functional.linear(torch.ones(2, 3), torch.ones(4, 5))


def of_numpy() -> Any:
    return np.stack([np.ones(2), np.ones(3)])


def of_json() -> Any:
    return json.loads("{")


@pytest.mark.parametrize("call", [of_torch, of_numpy, of_json])
def test_the_last_line_of_the_user_s_is_named(call: Any) -> None:
    line = call.__code__.co_firstlineno + 1
    assert fault_of(call).hint == f"where: test_places.py, line {line}, in {call.__name__}"


def test_code_without_a_file_is_named_by_that_of_its_module() -> None:
    """As of a script's class in a worker process."""
    names = {"__name__": "__main__", "__file__": "folder/script.py"}
    exec(compile("\n\ndef factor():\n    raise KeyError(3)\n", "<dynamic-code>", "exec"), names)  # noqa: S102
    assert fault_of(names["factor"]).hint == "where: script.py, line 4, in factor"


def test_where_no_line_is_the_user_s_the_innermost_is_named() -> None:
    assert "where: decoder.py, line " in fault_of(json.loads, "{").hint


def test_a_long_message_is_one_line_that_is_cut() -> None:
    def factor() -> None:
        raise RuntimeError("\n".join(f"line {number}" for number in range(80)))

    what = fault_of(factor).what
    assert what.startswith("Mine.factor failed with RuntimeError: line 0 line 1 ")
    assert what.endswith("...")
    assert len(what) < 350


class Leaving(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(64, 10)

    def forward(self, x: Any) -> Any:
        if self.training:
            sys.exit(3)
        return self.layer(x.flatten(1))


@pytest.mark.slow
@pytest.mark.parametrize("executor", ["sequential", "processes"])
def test_a_module_that_ends_the_process_has_failed(executor: str) -> None:
    learning = {"data": {"kind": "digits", "train_limit": 60}, "model": Leaving()}
    scenario = of_learning(learning, clients=3, cohort=1)
    with pytest.raises(PartError, match=r"Leaving.forward failed with SystemExit: 3") as failed:
        simulate(scenario, store=False, executor=executor)
    assert failed.value.round == 1
    assert failed.value.client is not None
    assert f"where: {Path(__file__).name}, line " in failed.value.hint
