"""What is learned: the only package that imports torch, and only when a learner is built."""

from fedsim.learning.aggregation.combining import Of
from fedsim.learning.aggregation.contracts import AGGREGATIONS, Aggregator
from fedsim.learning.aggregation.mean import Mean
from fedsim.learning.algorithms.catalogue import LOCAL_ALGORITHMS
from fedsim.learning.algorithms.contracts import Batch, Gathered, LocalAlgorithm, LocalTask, Start, Stepped
from fedsim.learning.algorithms.feddyn import FedDyn
from fedsim.learning.algorithms.fedper import FedPer
from fedsim.learning.algorithms.fedprox import FedProx
from fedsim.learning.algorithms.fedrolex import FedRolex
from fedsim.learning.algorithms.heterofl import HeteroFL
from fedsim.learning.algorithms.moon import Moon
from fedsim.learning.algorithms.plain import Plain
from fedsim.learning.algorithms.scaffold import Scaffold
from fedsim.learning.compression.compressors import COMPRESSORS, Compressor, NoCompression
from fedsim.learning.compression.quantization import QSGD
from fedsim.learning.compression.sparsification import RandomK, TopK
from fedsim.learning.computing import ExecutorUsed, Work
from fedsim.learning.contracts import Learner
from fedsim.learning.data.datasets import DATASETS, Dataset, Digits, data_folder
from fedsim.learning.data.handed import dataset_of
from fedsim.learning.data.own_files import IdxFiles
from fedsim.learning.data.partitions.contracts import PARTITIONS, Partition
from fedsim.learning.data.partitions.dirichlet import DirichletPartition
from fedsim.learning.data.partitions.equal import EqualPartition
from fedsim.learning.data.partitions.quantity_skew import QuantitySkewPartition
from fedsim.learning.data.published import CIFAR10, CIFAR100, MNIST, FashionMNIST
from fedsim.learning.data.rows import padded
from fedsim.learning.drawn_samples import Drawn, SampleDraws
from fedsim.learning.evaluation import ClientEvaluations, Evaluation, KnownEvaluation, PendingEvaluation
from fedsim.learning.executors.catalogue import EXECUTORS
from fedsim.learning.executors.choice import ExecutorChoice, MakeExecutor
from fedsim.learning.executors.contracts import (
    EvaluationJob,
    Executor,
    Precision,
    TrainingJob,
    TrainingResult,
    TrainingSetup,
)
from fedsim.learning.local_training import LocalTraining
from fedsim.learning.model_and_update import Model, Release, Update
from fedsim.learning.models.settings import CNN3, MLP, MODELS, Architecture
from fedsim.learning.schedules import SCHEDULES, Schedule
from fedsim.learning.server_optimizers.adaptive import FedAdagrad, FedAdam, FedYogi
from fedsim.learning.server_optimizers.averaging import FedAvg, FedAvgM
from fedsim.learning.server_optimizers.contracts import SERVER_OPTIMIZERS, ServerOptimizer, ServerState
from fedsim.learning.settings import LEARNERS, LearnerSettings, Supervised
from fedsim.learning.store.contracts import Store
from fedsim.learning.store.keeping import Keeping
from fedsim.learning.store.memory import MemoryStore
from fedsim.learning.tasks.contracts import METRICS, TASKS, Metric, Metrics, Task
from fedsim.learning.tasks.of_label_sets import MultiLabel
from fedsim.learning.tasks.of_labels import Classification
from fedsim.learning.tasks.of_numbers import Regression
from fedsim.learning.tasks.of_tokens import NextToken
from fedsim.learning.timing_only import NoLearning
from fedsim.measurements import MEASUREMENTS

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
    "FedDyn",
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
    "TrainingSetup",
    "Update",
    "Work",
    "data_folder",
    "dataset_of",
    "padded",
]
