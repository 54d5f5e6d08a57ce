"""MOON: representations come nearer to those of the server's model, and away from those of the client's last one."""

from typing import Annotated, Any, ClassVar

from pydantic import Field

from fedsim.arrays import Vector
from fedsim.errors import ScenarioError
from fedsim.learning.algorithms.contracts import Batch, LocalAlgorithm, LocalTask, Memory, Start


class Moon(LocalAlgorithm):
    """The loss gains ``mu`` times a contrast of representations.

    With z, z_s and z_p the representations of a sample by the present model, by the server's and by the client's own
    after its last training, it is ``-log(e^(cos(z, z_s) / t) / (e^(cos(z, z_s) / t) + e^(cos(z, z_p) / t)))``:
    equations 3 and 4 and Algorithm 1 of Li, He and Song, "Model-contrastive federated learning", CVPR 2021. In a
    client's first training there is no last model, and nothing is added.

    The representation is what enters the dense or convolutional layer that is executed last; the paper has a projection
    head of two layers before it. The two models that it is compared with are in evaluation mode. Messages are those of
    plain training.

    Attributes
    ----------
    mu : float >= 0
        The paper tunes it over 0.1, 1, 5 and 10.
    temperature : float > 0, t

    Examples
    --------
    >>> import torch
    >>> model, last, server = torch.tensor([[1.0, 0.0]]), torch.tensor([[0.0, 1.0]]), torch.tensor([[1.0, 0.0]])
    >>> batch = Batch(torch.tensor(0.5), None, None, model, {"server": server, "last": last})
    >>> round(float(Moon(mu=1.0, temperature=0.5).loss(batch)), 4)  # 0.5 + log(1 + e^(-1 / 0.5))
    0.6269
    """

    remembers: ClassVar[bool] = True
    has_loss: ClassVar[bool] = True

    mu: Annotated[float, Field(ge=0)] = 1.0
    temperature: Annotated[float, Field(gt=0)] = 0.5

    def begin(self, task: LocalTask) -> Start:
        if not task.memory:
            return Start(task.model)
        return Start(task.model, anchors={"server": task.model, "last": task.memory["model"]})

    def end(self, task: LocalTask, difference: Vector) -> Memory:
        return {"model": task.model + difference}

    def loss(self, batch: Batch) -> Any:
        if batch.representation is None:
            raise ScenarioError(
                "learning.algorithm: 'moon' compares what enters the last dense or convolutional layer, and this model "
                "has no such layer; allowed: a model with one"
            )
        if not batch.anchors:
            return batch.data
        near, far = (_cosine(batch.representation, batch.anchors[name]) for name in ("server", "last"))
        # -log(e^a / (e^a + e^b)) is log(1 + e^(b - a)).
        contrast = near.new_zeros(()).logaddexp((far - near) / self.temperature)
        return batch.data + self.mu * contrast.mean()


def _cosine(one: Any, other: Any) -> Any:
    return (one * other).sum(1) / (one.norm(dim=1) * other.norm(dim=1)).clamp_min(1e-8)
