"""fedsim: a discrete-event network simulator for federated learning.

At which second does the model reach 80 %, and what would another selector, deadline, network or crowd have done?

==============  ===================================================================
`Scenario`      a frozen description of one experiment; TOML or Python
`simulate`      run a scenario and return its `History`
`run`           the same, kept in a folder with tables and figures
`read_run`      the history of such a folder
`load_model`    its model, as a module of PyTorch
`History`       participations, rounds and evaluations as tables
`sweep`         many runs of variants and seeds, compared pair by pair; a `Study`
`draw`          one figure of several histories
`Testbed`       the clock of a scenario, for training code of your own
`Component`     what a part of your own (network, law, policy ...) derives from
`check_selector`  contract checks for a selector of your own
==============  ===================================================================

Names load when they are first used: importing fedsim loads neither torch nor matplotlib.
"""

from typing import TYPE_CHECKING

from fedsim.lazy import names_of, on_use

if TYPE_CHECKING:
    from fedsim.bridges import Testbed as Testbed
    from fedsim.errors import FedsimError as FedsimError
    from fedsim.history import History as History, draw as draw
    from fedsim.registry import Component as Component
    from fedsim.results import load_model as load_model, read_run as read_run, run as run
    from fedsim.scenario import Scenario as Scenario
    from fedsim.selectors import Cohort as Cohort, Reports as Reports, RoundView as RoundView
    from fedsim.simulation import simulate as simulate
    from fedsim.studies.result import StudyResult as StudyResult
    from fedsim.studies.study import Study as Study
    from fedsim.studies.sweeping import sweep as sweep
    from fedsim.testing import check_selector as check_selector
else:
    __getattr__ = on_use(__name__)

__version__ = "0.1.0"


def __dir__() -> list[str]:
    return sorted([*names_of(__name__), "__version__"])
