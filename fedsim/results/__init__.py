"""Run folders: writing, reading, summary and report of a run."""

from fedsim.results.folder import RunFolder, read_run
from fedsim.results.recording import run
from fedsim.results.report import report
from fedsim.results.summary import rows, summarise

__all__ = ["RunFolder", "read_run", "report", "rows", "run", "summarise"]
