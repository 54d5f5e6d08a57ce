"""The executor "merged": clients that do one plain step each are computed as one batch."""

from fedsim.arrays import FloatArray
from fedsim.learning.executors.contracts import MergedJob, TrainingSetup, fingerprint_with
from fedsim.learning.executors.faults import named_faults
from fedsim.learning.executors.merged.steps import MergedSteps
from fedsim.learning.executors.sequential import SequentialExecutor
from fedsim.learning.executors.trainer import one_thread


class MergedExecutor(SequentialExecutor):
    """The sequential executor, which also works out sums of single steps without the steps.

    Parameters
    ----------
    setup : TrainingSetup
    device : ``"cpu"``

    Attributes
    ----------
    fingerprint : ``"merged"``, or ``"merged-bfloat16"`` with that precision
    max_batch : 256
    merges : whether it does so: with plain SGD, without clipping of gradients, on a model without batch normalisation
        whose samples do not see each other

    Raises
    ------
    FedsimError
        If another device is asked for.
    """

    def __init__(self, setup: TrainingSetup, device: str = "cpu") -> None:
        super().__init__(setup, device)
        self.fingerprint = fingerprint_with(setup.precision, "merged")
        with one_thread(), named_faults(setup):
            self._steps = MergedSteps(setup, self._trainer)
        self.merges: bool = self._steps.allowed

    def train_sum(self, job: MergedJob) -> FloatArray:
        """Return the weighted sum of what clients learn in one step each, shape (d,)."""
        with one_thread(), named_faults(self._setup):
            return self._steps.sum(job)
