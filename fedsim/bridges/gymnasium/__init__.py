"""Selection as a problem of reinforcement learning: scenarios as environments of Gymnasium.

Importing it registers ``fedsim/Selection-v0`` and ``fedsim/Stragglers-v0``.
"""

from importlib.util import find_spec

if find_spec("gymnasium") is None:
    raise ImportError("environments need gymnasium, which is not installed: pip install 'fedsim-des[gym]'")

from fedsim.bridges.gymnasium.actions import Actions as Actions
from fedsim.bridges.gymnasium.environment import SelectionEnv as SelectionEnv
from fedsim.bridges.gymnasium.observations import COLUMNS as COLUMNS, Observations as Observations
from fedsim.bridges.gymnasium.registration import (
    CROWD_WITH_STRAGGLERS as CROWD_WITH_STRAGGLERS,
    SELECTION as SELECTION,
    STRAGGLERS as STRAGGLERS,
    register,
)
from fedsim.bridges.gymnasium.rewards import Reward as Reward, Step as Step, Weights as Weights

register()
