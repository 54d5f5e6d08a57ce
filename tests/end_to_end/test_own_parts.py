"""Data sets, models and tasks that a scenario file names by their classes, from the command line."""

import json
import sys
from pathlib import Path

import pytest

from fedsim import cli

PARTS = """
import numpy as np
import torch
from torch import nn


class Words(torch.utils.data.Dataset):
    def __init__(self, train=True, count=40):
        self.count, self.start = count, 0 if train else 1000

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        length = 2 + index % 3
        return torch.arange(1, 1 + length), torch.arange(2, 2 + length)


class EachPlace(nn.Module):
    def __init__(self, classes, width=4):
        super().__init__()
        self.vectors, self.scores = nn.Embedding(classes, width), nn.Linear(width, classes)

    def forward(self, samples):
        return self.scores(self.vectors(samples))
"""
SCENARIO = """
name = "own"
network = "pause-two-speed"
crowd = { clients = 4 }
rounds = { count = 2 }
selector = { kind = "uniform", cohort = 2 }
[learning]
task = "next-token"
data = { kind = "parts_of_mine:Words", count = 30 }
model = { kind = "parts_of_mine:EachPlace", width = 3 }
local = { learning_rate = 0.5 }
"""


@pytest.mark.parametrize("beside_the_file", [True, False])
def test_modules_are_found_beside_the_file_and_in_the_current_folder(beside_the_file, tmp_path, monkeypatch, capsys):
    assert _run(tmp_path, monkeypatch, beside_the_file) == 0, capsys.readouterr()
    metrics = json.loads((tmp_path / "out" / "summary.json").read_text())["final_metrics"]
    assert set(metrics) == {"accuracy", "perplexity"}


def _run(place: Path, monkeypatch, beside):
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "parts_of_mine", raising=False)
    (place / "here").mkdir()
    (place / "elsewhere").mkdir()
    monkeypatch.chdir(place / "elsewhere")
    (place / "here" / "own.toml").write_text(SCENARIO)
    (place / ("here" if beside else "elsewhere") / "parts_of_mine.py").write_text(PARTS)
    line = ["run", str(place / "here" / "own.toml"), "--out", str(place / "out"), "--executor", "sequential"]
    monkeypatch.setattr(sys, "argv", ["fedsim", *line, "--quiet"])
    with pytest.raises(SystemExit) as end:
        cli.main()
    return end.value.code
