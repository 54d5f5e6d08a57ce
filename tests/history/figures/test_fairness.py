"""The figure of the clients' accuracies."""

import numpy as np
import pytest

from fedsim.errors import RunError
from fedsim.history import Recorder, draw_clients


def history(name, accuracy):
    recorder = Recorder(name)
    for number in (1, 3):
        for client, one in enumerate(accuracy):
            row = {"client": client, "samples": 1, "accuracy": one / number, "loss": 0.0}
            recorder.add_row("client_evaluations", round=number, **row)
    return recorder.history()


def test_accuracies_of_the_last_evaluation_ascend_over_the_share_of_clients(tmp_path):
    runs = [history("one", [0.9, 0.3, 0.6, 0.0]), history("other", [0.3] * 4)]
    figure = draw_clients(runs, labels=["a", "b"], out=tmp_path / "clients.png")
    first, second = figure.axes[0].get_lines()
    assert [text.get_text() for text in figure.axes[0].get_legend().get_texts()] == ["a, round 3", "b, round 3"]
    np.testing.assert_allclose(first.get_xdata(), [0.0, 0.25, 0.5, 0.75, 1.0])
    np.testing.assert_allclose(first.get_ydata(), [0.0, 0.0, 0.1, 0.2, 0.3], err_msg="the first step is the lowest's")
    np.testing.assert_allclose(second.get_ydata(), [0.1] * 5)
    assert (tmp_path / "clients.png").read_bytes().startswith(b"\x89PNG")


def test_a_run_without_accuracies_of_clients_is_named():
    runs = [history("one", [0.5] * 4), Recorder("timing").history()]
    with pytest.raises(RunError, match="timing: holds no accuracy of clients to draw"):
        draw_clients(runs)
