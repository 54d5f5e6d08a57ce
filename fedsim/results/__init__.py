"""Run folders, tables and figures: the only room with matplotlib in it."""

from fedsim.history.figures import draw
from fedsim.results.folder import RunFolder, read_run
from fedsim.results.recording import run
from fedsim.results.report import report
from fedsim.results.summary import rows, summarise

__all__ = ["RunFolder", "draw", "read_run", "report", "rows", "run", "summarise"]
