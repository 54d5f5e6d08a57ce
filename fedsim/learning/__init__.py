"""What is learned: the only room with torch in it, and torch loads only when a learner is built.

Handles and settings: `Learner`, `Model`, `Update`, `Release`, `Evaluation`; `Supervised`, `NoLearning`,
`LocalTraining`. Parts: `DATASETS`, `PARTITIONS`, `MODELS`, `SERVER_OPTIMIZERS`, `LEARNERS`. Results: `MemoryStore`.
What a server can be told of updates: `MEASUREMENTS`.
"""

from fedsim.learning.contracts import Evaluation, Learner, Model, Of, Release, Update
from fedsim.learning.data.datasets import CIFAR10, DATASETS, MNIST, Dataset, Digits, FashionMNIST, data_folder
from fedsim.learning.data.partitions import (
    PARTITIONS,
    DirichletPartition,
    EqualPartition,
    Partition,
    QuantitySkewPartition,
)
from fedsim.learning.lineage.store import MemoryStore, Store
from fedsim.learning.local_training import LocalTraining
from fedsim.learning.models.settings import CNN3, MLP, MODELS
from fedsim.learning.server_optimizers import SERVER_OPTIMIZERS, FedAvg, ServerOptimizer
from fedsim.learning.settings import LEARNERS, LearnerSettings, Supervised
from fedsim.learning.timing_only import NoLearning
from fedsim.measurements import MEASUREMENTS

__all__ = [
    "CIFAR10",
    "CNN3",
    "DATASETS",
    "LEARNERS",
    "MEASUREMENTS",
    "MLP",
    "MNIST",
    "MODELS",
    "PARTITIONS",
    "SERVER_OPTIMIZERS",
    "Dataset",
    "Digits",
    "DirichletPartition",
    "EqualPartition",
    "Evaluation",
    "FashionMNIST",
    "FedAvg",
    "Learner",
    "LearnerSettings",
    "LocalTraining",
    "MemoryStore",
    "Model",
    "NoLearning",
    "Of",
    "Partition",
    "QuantitySkewPartition",
    "Release",
    "ServerOptimizer",
    "Store",
    "Supervised",
    "Update",
    "data_folder",
]
