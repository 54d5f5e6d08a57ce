"""Everything fedsim refuses, as children of one base class.

A message names the field, the value and what is allowed, so that it can be shown to a user as it is.
"""


class FedsimError(Exception):
    """Base class of every error that fedsim raises on purpose."""


class ScenarioError(FedsimError):
    """A scenario, or a value set in it, is not one that can be simulated."""


class SelectorError(FedsimError):
    """A selector broke its contract: it returned something that is no cohort of the candidates."""


class ContractError(FedsimError):
    """A part of the user's own does not keep the contract of its kind."""


class DataError(FedsimError):
    """A data set is missing, incomplete or not in the form it should have."""


class RunError(FedsimError):
    """A run folder cannot be written or read."""


class WriteError(RunError):
    """A file cannot be written now, as on a full disk; a later attempt may succeed."""


class FolderGoneError(RunError):
    """The folder that a file belongs to has vanished."""


class StoreError(FedsimError):
    """A store of results cannot be opened."""


class StoreWarning(UserWarning):
    """A store lost something or keeps nothing more; results are right, and some are computed again."""


class AuditError(FedsimError):
    """An audit found that a run does not conserve bits or time; a fault of fedsim or of a part given to it."""
