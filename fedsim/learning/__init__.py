"""What is learned: the only package that imports torch, and only when a learner is built."""

from typing import TYPE_CHECKING

from fedsim.lazy import on_use

if TYPE_CHECKING:
    from fedsim.learning.aggregation.combining import Of as Of
    from fedsim.learning.aggregation.contracts import (
        AGGREGATIONS as AGGREGATIONS,
        Aggregator as Aggregator,
        Mean as Mean,
    )
    from fedsim.learning.algorithms.contracts import (
        LOCAL_ALGORITHMS as LOCAL_ALGORITHMS,
        Batch as Batch,
        Gathered as Gathered,
        LocalAlgorithm as LocalAlgorithm,
        LocalSteps as LocalSteps,
        LocalTask as LocalTask,
        Start as Start,
        Stepped as Stepped,
    )
    from fedsim.learning.algorithms.feddyn import FedDyn as FedDyn
    from fedsim.learning.algorithms.fednova import FedNova as FedNova
    from fedsim.learning.algorithms.moon import Moon as Moon
    from fedsim.learning.algorithms.personal import FedBN as FedBN, FedPer as FedPer
    from fedsim.learning.algorithms.plain import FedProx as FedProx, Plain as Plain
    from fedsim.learning.algorithms.scaffold import Scaffold as Scaffold
    from fedsim.learning.algorithms.widths import FedRolex as FedRolex, HeteroFL as HeteroFL
    from fedsim.learning.compression.compressors import (
        COMPRESSORS as COMPRESSORS,
        Compressor as Compressor,
        NoCompression as NoCompression,
    )
    from fedsim.learning.compression.quantization import QSGD as QSGD
    from fedsim.learning.compression.sparsification import RandomK as RandomK, TopK as TopK
    from fedsim.learning.contracts import Learner as Learner, Model as Model, Release as Release, Update as Update
    from fedsim.learning.data.datasets import DATASETS as DATASETS, Dataset as Dataset, data_folder as data_folder
    from fedsim.learning.data.division import Division as Division
    from fedsim.learning.data.given import dataset_of as dataset_of, padded as padded
    from fedsim.learning.data.images.cifar import CIFAR10 as CIFAR10, CIFAR100 as CIFAR100
    from fedsim.learning.data.images.digits import Digits as Digits
    from fedsim.learning.data.images.mnist import MNIST as MNIST, FashionMNIST as FashionMNIST
    from fedsim.learning.data.images.own_files import IdxFiles as IdxFiles
    from fedsim.learning.data.partitions.by_label import (
        DirichletPartition as DirichletPartition,
        QuantitySkewPartition as QuantitySkewPartition,
    )
    from fedsim.learning.data.partitions.contracts import PARTITIONS as PARTITIONS, Partition as Partition
    from fedsim.learning.data.partitions.sizes import EqualPartition as EqualPartition
    from fedsim.learning.drawn_samples import Drawn as Drawn, SampleDraws as SampleDraws
    from fedsim.learning.evaluation import (
        ClientEvaluations as ClientEvaluations,
        Evaluation as Evaluation,
        KnownEvaluation as KnownEvaluation,
        PendingEvaluation as PendingEvaluation,
    )
    from fedsim.learning.executors.choice import (
        EXECUTORS as EXECUTORS,
        ExecutorChoice as ExecutorChoice,
        MakeExecutor as MakeExecutor,
    )
    from fedsim.learning.executors.contracts import (
        EvaluationJob as EvaluationJob,
        Executor as Executor,
        Precision as Precision,
        TrainingJob as TrainingJob,
        TrainingResult as TrainingResult,
        TrainingSetup as TrainingSetup,
    )
    from fedsim.learning.lineage.known import Keeping as Keeping
    from fedsim.learning.local_training import LocalTraining as LocalTraining
    from fedsim.learning.models.images import CNN3 as CNN3
    from fedsim.learning.models.settings import MLP as MLP, MODELS as MODELS, Architecture as Architecture
    from fedsim.learning.schedules import SCHEDULES as SCHEDULES, Schedule as Schedule
    from fedsim.learning.server_optimizers.adaptive import (
        FedAdagrad as FedAdagrad,
        FedAdam as FedAdam,
        FedYogi as FedYogi,
    )
    from fedsim.learning.server_optimizers.averaging import FedAvg as FedAvg, FedAvgM as FedAvgM
    from fedsim.learning.server_optimizers.contracts import (
        SERVER_OPTIMIZERS as SERVER_OPTIMIZERS,
        ServerOptimizer as ServerOptimizer,
        ServerState as ServerState,
    )
    from fedsim.learning.settings import (
        LEARNERS as LEARNERS,
        LearnerSettings as LearnerSettings,
        Supervised as Supervised,
    )
    from fedsim.learning.sizes import ExecutorUsed as ExecutorUsed, Work as Work
    from fedsim.learning.store.contracts import MemoryStore as MemoryStore, Store as Store
    from fedsim.learning.tasks.contracts import (
        METRICS as METRICS,
        TASKS as TASKS,
        Metric as Metric,
        Metrics as Metrics,
        Task as Task,
    )
    from fedsim.learning.tasks.of_label_sets import MultiLabel as MultiLabel
    from fedsim.learning.tasks.of_labels import Classification as Classification
    from fedsim.learning.tasks.of_numbers import Regression as Regression
    from fedsim.learning.tasks.of_tokens import NextToken as NextToken
    from fedsim.learning.timing_only import NoLearning as NoLearning
    from fedsim.learning.training_run import TrainingRun as TrainingRun
    from fedsim.measurements import MEASUREMENTS as MEASUREMENTS
else:
    __getattr__ = on_use(__name__)
