"""The loop of `plain_loop.py` with the seconds of a cell: `main` has five lines more, and `Testbed` is imported."""

import numpy as np
import torch
from plain_loop import CLIENTS, COHORT, EPOCHS, ROUNDS, digits, train
from torch import nn

from fedsim import Testbed


def main() -> list[float]:
    """Train, and return the accuracy on the test images after each round."""
    x, y, test_x, test_y = digits()
    rng = np.random.default_rng(1)
    shares = [torch.tensor(part) for part in np.array_split(rng.permutation(len(y)), CLIENTS)]
    torch.manual_seed(0)
    model, accuracies = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10)), list[float]()
    testbed = Testbed("scenarios/testbed/cell.toml", "runs/timed-loop", replace=True)
    for number in range(1, ROUNDS + 1):
        cohort = rng.choice(CLIENTS, COHORT, replace=False).tolist()
        testbed.round(cohort, samples=[EPOCHS * len(shares[client]) for client in cohort])
        trained = [train(model, x[shares[client]], y[shares[client]], CLIENTS * number + client) for client in cohort]
        mean = {name: torch.stack([one[name] for one in trained]).mean(0) for name in trained[0]}
        model.load_state_dict(mean)
        accuracy = float((model(test_x).argmax(1) == test_y).float().mean())
        accuracies.append(accuracy)
        testbed.report(accuracy=accuracy)
        print(f"{testbed.now_s:5.1f} s", end=" ")
        print(f"round {number:2}: {accuracy:.1%} of the test images are classified correctly")
    testbed.finish()
    return accuracies


if __name__ == "__main__":
    main()
