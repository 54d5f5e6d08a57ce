"""Federated averaging on handwritten digits: a plain loop of PyTorch, and six lines that put it into a cell."""

from copy import deepcopy

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn

from fedsim import Testbed  # fedsim

CLIENTS, COHORT, ROUNDS, EPOCHS, BATCH, RATE = 40, 8, 30, 2, 16, 0.1


def digits() -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return images and labels to train on and to test on."""
    images, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(labels))
    x, y = torch.tensor(images[order] / 16.0, dtype=torch.float32), torch.tensor(labels[order])
    return x[:1400], y[:1400], x[1400:], y[1400:]


def train(model: nn.Module, x: Tensor, y: Tensor, seed: int) -> dict[str, Tensor]:
    """Return the weights of a copy of the model after the epochs of one client."""
    own = deepcopy(model)
    optimizer = torch.optim.SGD(own.parameters(), lr=RATE)
    order = torch.Generator().manual_seed(seed)
    for _ in range(EPOCHS):
        for batch in torch.randperm(len(y), generator=order).split(BATCH):  # type: ignore[no-untyped-call]
            optimizer.zero_grad()
            nn.functional.cross_entropy(own(x[batch]), y[batch]).backward()  # type: ignore[no-untyped-call]
            optimizer.step()
    return own.state_dict()


def main() -> list[float]:
    """Train, and return the accuracy on the test images after each round."""
    x, y, test_x, test_y = digits()
    rng = np.random.default_rng(1)
    shares = [torch.tensor(part) for part in np.array_split(rng.permutation(len(y)), CLIENTS)]
    torch.manual_seed(0)
    model, accuracies = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10)), list[float]()
    testbed = Testbed("scenarios/testbed/cell.toml", "runs/timed-loop", replace=True)  # fedsim
    for number in range(1, ROUNDS + 1):
        cohort = rng.choice(CLIENTS, COHORT, replace=False).tolist()
        testbed.round(cohort, samples=[EPOCHS * len(shares[client]) for client in cohort])  # fedsim
        trained = [train(model, x[shares[client]], y[shares[client]], CLIENTS * number + client) for client in cohort]
        mean = {name: torch.stack([one[name] for one in trained]).mean(0) for name in trained[0]}
        model.load_state_dict(mean)
        accuracy = float((model(test_x).argmax(1) == test_y).float().mean())
        accuracies.append(accuracy)
        testbed.report(accuracy=accuracy)  # fedsim
        print(f"{testbed.now_s:5.1f} s", end=" ")  # fedsim
        print(f"round {number:2}: {accuracy:.1%} of the test images are classified correctly")
    testbed.finish()  # fedsim
    return accuracies


if __name__ == "__main__":
    main()
