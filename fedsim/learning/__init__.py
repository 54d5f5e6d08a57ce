"""What is learned: the only package that imports torch, and only when a learner is built."""

from typing import TYPE_CHECKING

from fedsim.lazy import on_use
from fedsim.learning.aggregation.contracts import AGGREGATIONS, Aggregator
from fedsim.learning.algorithms.contracts import LOCAL_ALGORITHMS, LocalAlgorithm
from fedsim.learning.compression.compressors import COMPRESSORS, Compressor
from fedsim.learning.contracts import Learner, Model, Release, Update
from fedsim.learning.data.datasets import DATASETS, Dataset, data_folder
from fedsim.learning.data.partitions.contracts import PARTITIONS, Partition
from fedsim.learning.evaluation import Evaluation
from fedsim.learning.local_training import LocalTraining
from fedsim.learning.models.settings import MODELS
from fedsim.learning.schedules import SCHEDULES, Schedule
from fedsim.learning.server_optimizers.contracts import SERVER_OPTIMIZERS, ServerOptimizer
from fedsim.learning.settings import LEARNERS, LearnerSettings, Supervised
from fedsim.learning.tasks.contracts import METRICS, TASKS, Metric, Metrics, Task
from fedsim.learning.training_run import TrainingRun
from fedsim.measurements import MEASUREMENTS

if TYPE_CHECKING:
    from fedsim.learning.aggregation.combining import Of
    from fedsim.learning.aggregation.contracts import Mean
    from fedsim.learning.algorithms.contracts import Batch, Gathered, LocalSteps, LocalTask, Start, Stepped
    from fedsim.learning.algorithms.feddyn import FedDyn
    from fedsim.learning.algorithms.fednova import FedNova
    from fedsim.learning.algorithms.moon import Moon
    from fedsim.learning.algorithms.personal import FedBN, FedPer
    from fedsim.learning.algorithms.plain import FedProx, Plain
    from fedsim.learning.algorithms.scaffold import Scaffold
    from fedsim.learning.algorithms.widths import FedRolex, HeteroFL
    from fedsim.learning.compression.compressors import NoCompression
    from fedsim.learning.compression.quantization import QSGD
    from fedsim.learning.compression.sparsification import RandomK, TopK
    from fedsim.learning.data.division import Division
    from fedsim.learning.data.given import dataset_of, padded
    from fedsim.learning.data.images.cifar import CIFAR10, CIFAR100
    from fedsim.learning.data.images.digits import Digits
    from fedsim.learning.data.images.mnist import MNIST, FashionMNIST
    from fedsim.learning.data.images.own_files import IdxFiles
    from fedsim.learning.data.partitions.by_label import DirichletPartition, QuantitySkewPartition
    from fedsim.learning.data.partitions.sizes import EqualPartition
    from fedsim.learning.drawn_samples import Drawn, SampleDraws
    from fedsim.learning.evaluation import ClientEvaluations, KnownEvaluation, PendingEvaluation
    from fedsim.learning.executors.choice import EXECUTORS, ExecutorChoice, MakeExecutor
    from fedsim.learning.executors.contracts import (
        EvaluationJob,
        Executor,
        Precision,
        TrainingJob,
        TrainingResult,
        TrainingSetup,
    )
    from fedsim.learning.lineage.known import Keeping
    from fedsim.learning.models.images import CNN3
    from fedsim.learning.models.settings import MLP, Architecture
    from fedsim.learning.server_optimizers.adaptive import FedAdagrad, FedAdam, FedYogi
    from fedsim.learning.server_optimizers.averaging import FedAvg, FedAvgM
    from fedsim.learning.server_optimizers.contracts import ServerState
    from fedsim.learning.sizes import ExecutorUsed, Work
    from fedsim.learning.store.contracts import MemoryStore, Store
    from fedsim.learning.tasks.of_label_sets import MultiLabel
    from fedsim.learning.tasks.of_labels import Classification
    from fedsim.learning.tasks.of_numbers import Regression
    from fedsim.learning.tasks.of_tokens import NextToken
    from fedsim.learning.timing_only import NoLearning
else:
    __getattr__ = on_use(__name__)

__all__ = [
    "AGGREGATIONS",
    "CIFAR10",
    "CIFAR100",
    "CNN3",
    "COMPRESSORS",
    "DATASETS",
    "EXECUTORS",
    "LEARNERS",
    "LOCAL_ALGORITHMS",
    "MEASUREMENTS",
    "METRICS",
    "MLP",
    "MNIST",
    "MODELS",
    "PARTITIONS",
    "QSGD",
    "SCHEDULES",
    "SERVER_OPTIMIZERS",
    "TASKS",
    "Aggregator",
    "Architecture",
    "Batch",
    "Classification",
    "ClientEvaluations",
    "Compressor",
    "Dataset",
    "Digits",
    "DirichletPartition",
    "Division",
    "Drawn",
    "EqualPartition",
    "Evaluation",
    "EvaluationJob",
    "Executor",
    "ExecutorChoice",
    "ExecutorUsed",
    "FashionMNIST",
    "FedAdagrad",
    "FedAdam",
    "FedAvg",
    "FedAvgM",
    "FedBN",
    "FedDyn",
    "FedNova",
    "FedPer",
    "FedProx",
    "FedRolex",
    "FedYogi",
    "Gathered",
    "HeteroFL",
    "IdxFiles",
    "Keeping",
    "KnownEvaluation",
    "Learner",
    "LearnerSettings",
    "LocalAlgorithm",
    "LocalSteps",
    "LocalTask",
    "LocalTraining",
    "MakeExecutor",
    "Mean",
    "MemoryStore",
    "Metric",
    "Metrics",
    "Model",
    "Moon",
    "MultiLabel",
    "NextToken",
    "NoCompression",
    "NoLearning",
    "Of",
    "Partition",
    "PendingEvaluation",
    "Plain",
    "Precision",
    "QuantitySkewPartition",
    "RandomK",
    "Regression",
    "Release",
    "SampleDraws",
    "Scaffold",
    "Schedule",
    "ServerOptimizer",
    "ServerState",
    "Start",
    "Stepped",
    "Store",
    "Supervised",
    "Task",
    "TopK",
    "TrainingJob",
    "TrainingResult",
    "TrainingRun",
    "TrainingSetup",
    "Update",
    "Work",
    "data_folder",
    "dataset_of",
    "padded",
]
