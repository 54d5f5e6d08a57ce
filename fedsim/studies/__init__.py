"""Studies: many runs of variants and seeds, compared pair by pair."""

from typing import TYPE_CHECKING

from fedsim.lazy import on_use

if TYPE_CHECKING:
    from fedsim.studies.result import StudyResult
    from fedsim.studies.study import Study, StudyError, Variant
    from fedsim.studies.sweeping import sweep
else:
    __getattr__ = on_use(
        __name__,
        {
            "Study": "fedsim.studies.study",
            "StudyError": "fedsim.studies.study",
            "StudyResult": "fedsim.studies.result",
            "Variant": "fedsim.studies.study",
            "sweep": "fedsim.studies.sweeping",
        },
    )

__all__ = ["Study", "StudyError", "StudyResult", "Variant", "sweep"]
