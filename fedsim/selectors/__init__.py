"""Selection of each round's clients: the contract of a selector, and the built-in methods."""

from typing import TYPE_CHECKING, Final

from fedsim.lazy import on_use
from fedsim.registry import Registry
from fedsim.selectors.adapter import SelectorInfo as SelectorInfo, SelectorPort as SelectorPort
from fedsim.selectors.baselines import All as All, Uniform as Uniform
from fedsim.selectors.contracts import (
    Allocation as Allocation,
    Answers as Answers,
    Cohort as Cohort,
    OracleView as OracleView,
    Probe as Probe,
    PublishedSelector as PublishedSelector,
    Reports as Reports,
    RoundView as RoundView,
    Sampling as Sampling,
    Selector as Selector,
)
from fedsim.selectors.questions import RandomizedResponse as RandomizedResponse

if TYPE_CHECKING:
    from fedsim.selectors.baselines import Fastest as Fastest
    from fedsim.selectors.fedsuv.fedsuv import FedSuv as FedSuv
    from fedsim.selectors.oort.fedscale import OortFedScale as OortFedScale
    from fedsim.selectors.oort.oort import Oort as Oort
    from fedsim.selectors.pause.pause import Pause as Pause
else:
    __getattr__ = on_use(__name__)


SELECTORS: Final = Registry(
    "selector",
    "fedsim.selectors",
    ("select", "observe"),
    {
        "active": "fedsim.selectors.adaptive.active:ActiveLearning",
        "adapow-d": "fedsim.selectors.power_of_choice:AdaPowD",
        "age-based": "fedsim.selectors.channel.age:AgeBased",
        "all": "fedsim.selectors.baselines:All",
        "all-compute": "fedsim.selectors.adaptive.all_compute:AllCompute",
        "aocs": "fedsim.selectors.adaptive.all_compute:ApproximateSampling",
        "bc-bn2": "fedsim.selectors.channel.update_aware:BcBn2",
        "best-channel": "fedsim.selectors.channel.best_channel:BestChannel",
        "bn2": "fedsim.selectors.channel.update_aware:Bn2",
        "bn2-c": "fedsim.selectors.channel.update_aware:Bn2C",
        "bsfl": "fedsim.selectors.pause.pause:Bsfl",
        "clustered-similarity": "fedsim.selectors.clustered.clustered:ClusteredBySimilarity",
        "clustered-size": "fedsim.selectors.clustered.clustered:ClusteredBySize",
        "cpow-d": "fedsim.selectors.power_of_choice:CpowD",
        "cs-ucb": "fedsim.selectors.cs_ucb:CsUcb",
        "cs-ucb-q": "fedsim.selectors.cs_ucb:CsUcbQ",
        "divfl": "fedsim.selectors.divfl:DivFl",
        "e3cs": "fedsim.selectors.volatile.e3cs:E3cs",
        "eafl": "fedsim.selectors.energy.eafl:Eafl",
        "fastest": "fedsim.selectors.baselines:Fastest",
        "fedcor": "fedsim.selectors.fedcor.fedcor:FedCor",
        "fedcs": "fedsim.selectors.fedcs:FedCs",
        "fedsampling": "fedsim.selectors.fedsampling.fedsampling:FedSampling",
        "fedsuv": "fedsim.selectors.fedsuv.fedsuv:FedSuv",
        "fedzero": "fedsim.selectors.energy.fedzero:FedZero",
        "fixed-ratio": "fedsim.selectors.fedsampling.fedsampling:FixedRatio",
        "haccs": "fedsim.selectors.labels.haccs:Haccs",
        "importance": "fedsim.selectors.importance:ImportanceSampling",
        "joint-bandwidth": "fedsim.selectors.joint_bandwidth.joint_bandwidth:JointBandwidth",
        "loss-proportional": "fedsim.selectors.baselines:LossProportional",
        "md": "fedsim.selectors.baselines:MdSampling",
        "ocean": "fedsim.selectors.energy.ocean:Ocean",
        "oort": "fedsim.selectors.oort.oort:Oort",
        "oort-fedscale": "fedsim.selectors.oort.fedscale:OortFedScale",
        "pause": "fedsim.selectors.pause.pause:Pause",
        "pause-enumeration": "fedsim.selectors.pause.enumeration:PauseEnumeration",
        "pause-genie": "fedsim.selectors.pause.genie:PauseGenie",
        "pause-vanilla-sa": "fedsim.selectors.pause.sa_pause:VanillaSaPause",
        "pisces": "fedsim.selectors.adaptive.pisces:Pisces",
        "poisson": "fedsim.selectors.baselines:PoissonSampling",
        "pow-d": "fedsim.selectors.power_of_choice:PowD",
        "proportional-fair": "fedsim.selectors.channel.best_channel:ProportionalFair",
        "pyramidfl": "fedsim.selectors.pyramid.pyramid:PyramidFl",
        "refl": "fedsim.selectors.refl.refl:Refl",
        "refl-oracle": "fedsim.selectors.refl.refl:ReflOracle",
        "round-robin": "fedsim.selectors.baselines:RoundRobin",
        "rpow-d": "fedsim.selectors.power_of_choice:RpowD",
        "sa-pause": "fedsim.selectors.pause.sa_pause:SaPause",
        "soonest": "fedsim.selectors.baselines:Soonest",
        "tifl": "fedsim.selectors.tifl.tifl:Tifl",
        "uniform": "fedsim.selectors.baselines:Uniform",
        "weighted": "fedsim.selectors.baselines:WeightedSampling",
    },
    stateful="fedsim.foreign:Stateful",
)
